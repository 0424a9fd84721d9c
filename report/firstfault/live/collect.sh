#!/bin/sh
# firstfault collect: gathers what a diagnosis of a failed job needs from this host into one directory or archive.
# POSIX shell and ordinary tools only. It reads and copies; it changes nothing, asks for no rights, stops no process
# of others, touches no GPU beyond nvidia-smi's own queries, and sends nothing anywhere. What it could not get stands
# in manifest.txt. Secrets are masked line by line, so that line numbers stay.
set -u
LC_ALL=C
export LC_ALL
umask 077

usage() {
    cat <<'END'
Usage: sh collect.sh [OPTION]... [PATH]...

Gathers the logs below each PATH and the state of this host: kernel log, limits, memory, disks and /dev/shm,
network and RDMA ports, clock, GPUs, and what Slurm and Kubernetes say of the job.

  -o OUT        directory, or archive that ends in .tar or .tar.gz (default: firstfault-collect-HOST-TIME)
                several hosts may share a directory; each writes a folder of its own
  -j JOB        Slurm job (default: SLURM_JOB_ID)
  -n NAMESPACE  Kubernetes namespace; without -n and -l Kubernetes is not asked
  -l SELECTOR   pods by label, such as job-name=train
  -s HOURS      how far back the kernel log and the journal go (default 24)
  -m MIB        of a larger log only the last MIB are taken (default: all)
  -t SECONDS    how long one command may take (default 20)
  -u            leave secrets as they are
  -h            this text
END
}

fail() { printf 'firstfault collect: %s\n' "$1" >&2; exit "${2:-1}"; }
have() { command -v "$1" >/dev/null 2>&1; }
number() { case $2 in ''|*[!0-9]*) fail "-$1 $2: a whole number is needed" 2 ;; esac; }

out='' job=${SLURM_JOB_ID:-} namespace='' selector='' hours=24 most='' patience=20 mask=yes
while getopts 'o:j:n:l:s:m:t:uh' option; do
    case $option in
        o) out=$OPTARG ;;
        j) job=$OPTARG ;;
        n) namespace=$OPTARG ;;
        l) selector=$OPTARG ;;
        s) hours=$OPTARG; number s "$hours" ;;
        m) most=$OPTARG; number m "$most" ;;
        t) patience=$OPTARG; number t "$patience" ;;
        u) mask=no ;;
        h) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
for path in "$@"; do
    [ -e "$path" ] || fail "$path: no such file or directory" 2
done

host=$(hostname 2>/dev/null || uname -n)
host=${host%%.*}
now=$(date -u +%Y%m%dT%H%M%SZ)
[ -n "$out" ] || out=firstfault-collect-$host-$now
archive=''
case $out in
    *.tar|*.tar.gz|*.tgz)
        archive=$out
        [ ! -e "$archive" ] || fail "$archive: is there already"
        out=$(mktemp -d "$(dirname "$archive")/.firstfault-collect.XXXXXX") || fail "$archive: its folder cannot be written"
        ;;
    *.zip|*.zst|*.xz|*.bz2) fail "-o $out: an archive ends in .tar or .tar.gz" 2 ;;
esac
top=$out/$host
mkdir -p "$top" 2>/dev/null || fail "$top: cannot be made; give -o a place that can be written"
out=$(cd "$out" && pwd) && top=$out/$host
scratch=$(mktemp -d "$out/.scratch.XXXXXX") || fail "$out: cannot be written"
trap 'rm -rf "$scratch"; [ -z "$archive" ] || rm -rf "$out"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
manifest=$top/manifest.txt
full=''
got=0 missing=0

note() { # note WORD TEXT: one line of the manifest
    printf '%-9s %s\n' "$1" "$2" >>"$manifest" 2>/dev/null || full=yes
    case $1 in got) got=$((got + 1)) ;; *) missing=$((missing + 1)); printf 'firstfault collect: %s %s\n' "$1" "$2" >&2 ;; esac
}

nap() { sleep 0.1 2>/dev/null || sleep 1; }

# the forms that firstfault.correlate.secrets knows, as far as sed can say them
masked() {
    if [ "$mask" = no ]; then cat; return; fi
    sed -E \
        -e '/-----BEGIN [A-Z ]*PRIVATE KEY-----/,/-----END [A-Z ]*PRIVATE KEY-----/s/.*/[masked]/' \
        -e 's#(://[^/@[:space:]:]*:)[^/@[:space:]]+@#\1[masked]@#g' \
        -e 's#([Bb][Ee][Aa][Rr][Ee][Rr][[:space:]]+)[A-Za-z0-9+/=._~-]{8,}#\1[masked]#g' \
        -e 's#([Aa][Uu][Tt][Hh][Oo][Rr][Ii][Zz][Aa][Tt][Ii][Oo][Nn]["'\'']?[[:space:]]*[=:][[:space:]]*["'\'']?([Bb][Aa][Ss][Ii][Cc][[:space:]]+)?)[A-Za-z0-9+/=._~-]{8,}#\1[masked]#g' \
        -e 's#(([Pp][Aa][Ss][Ss][Ww]([Oo][Rr])?[Dd]|[Pp][Aa][Ss][Ss][Pp][Hh][Rr][Aa][Ss][Ee]|[Ss][Ee][Cc][Rr][Ee][Tt]|[Cc][Rr][Ee][Dd][Ee][Nn][Tt][Ii][Aa][Ll][Ss]?)["'\'']?[[:space:]]*[=:][[:space:]]*["'\'']?)[^[:space:]"'\'',;&]+#\1[masked]#g' \
        -e 's#(([Tt][Oo][Kk][Ee][Nn]|([Ss][Ee][Cc][Rr][Ee][Tt]|[Aa][Pp][Ii]|[Aa][Cc][Cc][Ee][Ss][Ss]|[Pp][Rr][Ii][Vv][Aa][Tt][Ee]|[Aa][Uu][Tt][Hh])[_-]?[Kk][Ee][Yy])["'\'']?[[:space:]]*[=:][[:space:]]*["'\'']?)[A-Za-z0-9+/=._~-]{8,}#\1[masked]#g' \
        -e 's#(--?[A-Za-z0-9_.-]*([Pp][Aa][Ss][Ss][Ww]([Oo][Rr])?[Dd]|[Pp][Aa][Ss][Ss][Pp][Hh][Rr][Aa][Ss][Ee]|[Ss][Ee][Cc][Rr][Ee][Tt]|[Cc][Rr][Ee][Dd][Ee][Nn][Tt][Ii][Aa][Ll][Ss]?|[Tt][Oo][Kk][Ee][Nn]|([Ss][Ee][Cc][Rr][Ee][Tt]|[Aa][Pp][Ii]|[Aa][Cc][Cc][Ee][Ss][Ss]|[Pp][Rr][Ii][Vv][Aa][Tt][Ee]|[Aa][Uu][Tt][Hh])[_-]?[Kk][Ee][Yy])[[:space:]]+)[A-Za-z0-9+/=._~-]{8,}#\1[masked]#g' \
        -e 's#(AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}#[masked]#g' \
        -e 's#(AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{20,}|(pypi-|npm_|dckr_pat_|api_org_)[A-Za-z0-9_-]{20,})#[masked]#g' \
        -e 's#((AccountKey|SharedAccessKey)=)[A-Za-z0-9+/=]{20,}#\1[masked]#g' \
        -e 's#([?&]([Ss][Ii][Gg]|[Ss][Ii][Gg][Nn][Aa][Tt][Uu][Rr][Ee]|[Xx]-[Aa][Mm][Zz]-[A-Za-z-]+|[Xx]-[Gg][Oo][Oo][Gg]-[A-Za-z-]+|[Aa][Pp][Ii]_?[Kk][Ee][Yy]|[Kk][Ee][Yy])=)[A-Za-z0-9%._~+/=-]{8,}#\1[masked]#g' \
        -e 's#(hf_|gh[pousr]_|github_pat_|glpat-|xox[abprs]-|sk-|nvapi-)[A-Za-z0-9_-]{16,}#[masked]#g' \
        -e 's#eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}#[masked]#g' \
        -e 's#(hooks\.slack\.com/services/)[A-Za-z0-9/_-]+#\1[masked]#g'
}

# of Kubernetes objects: values of variables whose names speak of secrets, and annotations that repeat the object
masked_object() {
    if [ "$mask" = no ]; then cat; return; fi
    awk '
        /"kubectl.kubernetes.io\/last-applied-configuration":/ { sub(/: ".*"/, ": \"[masked]\"") }
        /"name":/ { secret = tolower($0) ~ /token|secret|passw|passphrase|credential|api_?key|access_?key|private_?key/ }
        secret && /"value":/ { sub(/"value": ".*"/, "\"value\": \"[masked]\"") }
        { print }' | masked
}

# bounded SECONDS COMMAND...: output to $scratch/out; the status of the command, 124 where it did not end in time.
# A process that hangs in the kernel cannot be ended; it is left alone, not waited for.
bounded() {
    limit=$1
    shift
    rm -f "$scratch/rc" "$scratch/pid"
    (
        sh -c 'echo $$ >"$1/pid"; shift; exec "$@"' sh "$scratch" "$@" >"$scratch/out" 2>&1 </dev/null
        echo $? >"$scratch/rc"
    ) 2>/dev/null &
    ends=$(($(date +%s) + limit))
    while [ ! -s "$scratch/rc" ]; do
        if [ "$(date +%s)" -gt "$ends" ]; then
            kill -9 "$(cat "$scratch/pid")" 2>/dev/null
            mv "$scratch/out" "$scratch/late" 2>/dev/null && cp "$scratch/late" "$scratch/out" && rm -f "$scratch/late"
            return 124
        fi
        nap
    done
    return "$(cat "$scratch/rc")"
}

# take FILE how COMMAND...: what a command prints, as a file of this host. How: shown (behind '$ command'), raw, object
take() {
    file=$1 how=$2
    shift 2
    [ -z "$full" ] || return 1
    if ! have "$1"; then
        note 'not here' "$1 ($file)"
        return 1
    fi
    bounded "$patience" "$@"
    status=$?
    mkdir -p "$(dirname "$out/$file")"
    {
        [ "$how" != shown ] || printf '$ %s\n' "$*"
        if [ "$how" = object ]; then masked_object <"$scratch/out"; else masked <"$scratch/out"; fi
    } >"$scratch/written" && mv "$scratch/written" "$out/$file" || { full=yes; return 1; }
    if [ "$status" = 124 ]; then
        note 'hung' "$1 did not end within $patience s ($file)"
    elif [ "$status" != 0 ]; then
        # what a tool says of its own trouble is no log of the job; of a GPU tool it is evidence
        case $1 in *-smi) ;; *) rm -f "$out/$file"; rmdir "$(dirname "$out/$file")" 2>/dev/null ;; esac
        printf 'firstfault collect: %s\n' "$(head -n 1 "$scratch/out" | cut -c 1-200)" >&2
        note 'failed' "$1 with status $status ($file)"
    else
        note 'got' "$file"
        return 0
    fi
    return 1
}

# state FILE COMMAND [SCRIPT]: what a line of shell prints, behind the command as it is best known
state() {
    file=$1 known=$2
    [ -z "$full" ] || return
    bounded "$patience" sh -c "${3:-$2}"
    status=$?
    { printf '$ %s\n' "$known"; masked <"$scratch/out"; } >"$scratch/written" &&
        mv "$scratch/written" "$top/$file" || { full=yes; return; }
    if [ "$status" = 124 ]; then note 'hung' "$known did not end within $patience s ($host/$file)"; else note 'got' "$host/$file"; fi
}

# --- logs -----------------------------------------------------------------------------------------------------------

shared_disk() {
    case $(stat -f -c %T "$1" 2>/dev/null) in
        nfs*|lustre|gpfs|beegfs|ceph|fuseblk|fuse*|cifs|smb*|gluster*|afs|panfs|v9fs|wekafs) return 0 ;;
    esac
    return 1
}

binary() { # a NUL among the first bytes
    [ "$(dd if="$1" bs=8192 count=1 2>/dev/null | wc -c)" != "$(dd if="$1" bs=8192 count=1 2>/dev/null | tr -d '\000' | wc -c)" ]
}

copy() { # copy FROM TO: one file, masked
    [ -z "$full" ] || return
    if [ ! -r "$1" ]; then note 'no right' "to read $1"; return; fi
    mkdir -p "$(dirname "$2")" || { full=yes; return; }
    case $1 in
        *.gz) unpack='gzip -dc' pack='gzip -c' ;;
        *.zst) unpack='zstd -dcq' pack='zstd -cq' ;;
        *.xz) unpack='xz -dc' pack='xz -c' ;;
        *.bz2) unpack='bzip2 -dc' pack='bzip2 -c' ;;
        *.tar|*.tgz|*.zip) note 'left out' "$1: an archive, cannot be masked; unpack it, or use -u"; [ "$mask" = no ] || return
            unpack='' pack='' ;;
        *) unpack='' pack='' ;;
    esac
    if [ -n "$unpack" ]; then
        have "${unpack%% *}" || { note 'left out' "$1: ${unpack%% *} is not here, so it cannot be masked"; return; }
        { $unpack <"$1" | masked | $pack; } >"$2" 2>/dev/null || { lost "$1" "$2"; return; }
    elif binary "$1"; then
        case ${1##*/} in
            *dump*|*trace*|*.pickle|*.pkl|*.journal) cp "$1" "$2" 2>/dev/null || { lost "$1" "$2"; return; } ;;
            *) note 'left out' "$1: no text"; return ;;
        esac
    elif [ -n "$most" ] && [ "$(wc -c <"$1")" -gt $((most * 1048576)) ]; then
        tail -c $((most * 1048576)) "$1" | sed 1d | masked >"$2" || { lost "$1" "$2"; return; }
        note 'cut' "$1: only its last $most MiB; line numbers are those of that part"
    else
        masked <"$1" >"$2" || { lost "$1" "$2"; return; }
    fi
    touch -r "$1" "$2" 2>/dev/null
    copied=$((copied + 1))
}

lost() { # a copy that was not complete is no copy
    rm -f "$2"
    note 'failed' "$1 could not be copied"
    [ "$(df -Pk "$out" 2>/dev/null | awk 'NR == 2 { print $4 }')" -gt 1024 ] 2>/dev/null || full=yes
}

logs() { # logs PATH: a file, or all below a directory; what several hosts see goes into one folder that the first fills
    name=$(basename "$1")
    if shared_disk "$1"; then
        place=$out/logs/$name
        mkdir -p "$out/logs"
        mkdir "$out/logs/.$name.taken" 2>/dev/null || { note 'got' "$1 (another host took it)"; return; }
    else
        place=$top/logs/$name
    fi
    again=2
    while [ -e "$place" ]; do place=${place%.again*}.again$again; again=$((again + 1)); done
    size=$(du -skL "$1" 2>/dev/null | awk '{ print $1 }')
    free=$(df -Pk "$out" | awk 'NR == 2 { print $4 }')
    if [ -z "$most" ] && [ "${size:-0}" -gt $((free - 65536)) ] 2>/dev/null; then
        note 'left out' "$1: $((size / 1024)) MiB, and $out has $((free / 1024)) MiB free; give -o another disk, or -m"
        return
    fi
    copied=0
    if [ -d "$1" ]; then
        (cd "$1" && find . -type f ! -path './.firstfault*' 2>/dev/null) >"$scratch/names"
        (cd "$1" && find . -type d ! -readable 2>/dev/null) >"$scratch/closed"
        while IFS= read -r each; do
            case "$(cd "$(dirname "$1/$each")" 2>/dev/null && pwd)/" in "$out"/*) continue ;; esac
            copy "$1/${each#./}" "$place/${each#./}"
        done <"$scratch/names"
        while IFS= read -r each; do note 'no right' "to read $1/${each#./}"; done <"$scratch/closed"
    else
        copy "$1" "$place"
    fi
    rmdir "$out/logs/.$name.taken" 2>/dev/null
    note 'got' "$1: $copied files"
}

# --- what is asked --------------------------------------------------------------------------------------------------

printf '$ hostname\n%s\n# firstfault collect at %s\n' "$host" "$now" >>"$manifest" || fail "$manifest: cannot be written"

slurm() {
    have scontrol || { [ -z "$job" ] || note 'not here' "scontrol, for job $job"; return; }
    bounded "$patience" scontrol ping >/dev/null 2>&1
    if [ -n "$job" ]; then
        take slurm/scontrol-job.txt shown scontrol show job "$job" &&
            outputs=$(sed -n 's/^ *Std\(Out\|Err\)=//p' "$out/slurm/scontrol-job.txt" | sort -u)
        take slurm/sacct.txt shown sacct -P -j "$job" \
            -o JobID,JobName,NodeList,State,ExitCode,DerivedExitCode,Start,End,Elapsed,MaxRSS,Reason
    else
        note 'not asked' "Slurm of a job: give -j JOB"
    fi
    take slurm/scontrol-node-"$host".txt shown scontrol show node "$host"
    take slurm/sinfo.txt shown sinfo -N -l
}

kubernetes() {
    [ -n "$namespace$selector" ] || { have kubectl && note 'not asked' "Kubernetes: give -n NAMESPACE or -l SELECTOR"; return; }
    have kubectl || { note 'not here' kubectl; return; }
    in_space=${namespace:+--namespace=$namespace} by_label=${selector:+--selector=$selector}
    # shellcheck disable=SC2086 # two options or none
    take kubectl/pods.json object kubectl get pods $in_space $by_label -o json --request-timeout="${patience}s" || return
    # shellcheck disable=SC2086
    take kubectl/events.json object kubectl get events $in_space -o json --request-timeout="${patience}s"
    take kubectl/nodes.json object kubectl get nodes -o json --request-timeout="${patience}s"
    # shellcheck disable=SC2086
    bounded "$patience" kubectl get pods $in_space $by_label --request-timeout="${patience}s" -o \
        'jsonpath={range .items[*]}{range .spec.containers[*]}{@.name}{" "}{end}{.metadata.name}{"\n"}{end}' || return
    cp "$scratch/out" "$scratch/pods"
    while read -r line; do
        pod=${line##* }
        for container in ${line% *}; do
            take "kubectl/${pod}_$container.log" raw kubectl logs $in_space "$pod" -c "$container" --timestamps
            bounded "$patience" kubectl logs $in_space "$pod" -c "$container" --timestamps --previous &&
                take "kubectl/${pod}_$container.previous.log" raw \
                    kubectl logs $in_space "$pod" -c "$container" --timestamps --previous
        done
    done <"$scratch/pods"
}

kernel() {
    if have journalctl && take "$host/journal-kernel.log" raw \
        journalctl --dmesg --no-pager --output=short-iso-precise --since="-${hours}h" &&
        [ "$(grep -vc '^-- ' "$top/journal-kernel.log")" -gt 0 ]; then
        take "$host/journal-services.log" raw journalctl --no-pager --output=short-iso-precise --since="-${hours}h" \
            -u slurmd -u kubelet -u containerd -u docker -u nvidia-persistenced -u nvidia-fabricmanager \
            -u systemd-oomd -u chronyd -u systemd-timesyncd -u opensm
    else
        rm -f "$top/journal-kernel.log"
        if have dmesg && dmesg --time-format=iso >/dev/null 2>&1; then
            take "$host/dmesg.log" raw dmesg --time-format=iso
        else
            take "$host/dmesg.log" raw dmesg
        fi
        for log in /var/log/kern.log /var/log/messages; do
            [ ! -f "$log" ] || copy "$log" "$top/${log##*/}"
        done
    fi
    [ ! -f /var/log/fabricmanager.log ] || copy /var/log/fabricmanager.log "$top/fabricmanager.log"
}

gpus() {
    if have nvidia-smi; then
        take "$host/nvidia-smi.txt" shown nvidia-smi
        take "$host/nvidia-smi-q.txt" shown nvidia-smi -q
        take "$host/nvidia-smi-topo.txt" shown nvidia-smi topo -m
        take "$host/nvidia-smi-nvlink.txt" shown nvidia-smi nvlink -e
    elif have rocm-smi; then
        take "$host/rocm-smi.txt" shown rocm-smi --showall
    elif have npu-smi; then
        take "$host/npu-smi.txt" shown npu-smi info
    else
        note 'not here' "nvidia-smi, rocm-smi, npu-smi: no word about GPUs"
    fi
}

machine() {
    {
        printf '$ hostname\n%s\n' "$host"
        printf '$ date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ\n%s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
        [ ! -r /proc/uptime ] || printf '$ cat /proc/uptime\n%s\n' "$(cat /proc/uptime)"
        printf '$ uname -a\n%s\n' "$(uname -a)"
    } >"$top/hostname.txt" && note 'got' "$host/hostname.txt"
    state limits.txt 'ulimit -a' 'ulimit -a; echo; echo hard; ulimit -H -a; cat /proc/self/limits'
    state memory.txt 'free -m' 'free -m; cat /proc/meminfo; for f in memory io cpu; do echo "$f:"; cat /proc/pressure/$f; done 2>/dev/null'
    state cgroup.txt 'cat /proc/self/cgroup' 'cat /proc/self/cgroup; cd /sys/fs/cgroup && for f in memory.max memory.peak memory.events pids.max pids.current; do [ ! -r $f ] || { echo "$f:"; cat $f; }; done'
    state df.txt 'df -PT'
    state df-inodes.txt 'df -Pi'
    state shm.txt 'df -P /dev/shm' 'df -P /dev/shm; ls -la /dev/shm | head -200'
    state sysctl.txt 'sysctl -a' 'for n in fs/file-max fs/nr_open kernel/pid_max kernel/threads-max kernel/shmmax kernel/shmall vm/max_map_count vm/overcommit_memory net/core/rmem_max net/core/wmem_max net/ipv4/ip_local_port_range net/ipv4/tcp_keepalive_time; do printf "%s = %s\n" $n "$(cat /proc/sys/$n 2>/dev/null)"; done'
    state ps.txt 'ps -eo pid,ppid,user,stat,wchan,etime,rss,args'
    state environment.txt 'env' 'env | grep -E "^(NCCL|RCCL|CUDA|TORCH|PYTORCH|GLOO|UCX|FI|OMPI|SLURM|MASTER|RANK|LOCAL_RANK|WORLD_SIZE|NODE_RANK|JOB_COMPLETION|OMP|HSA|HIP|ROCR|MKL)_?[A-Z0-9_]*=" | sort'
}

network() {
    state ip-addr.txt 'ip addr' 'ip -s addr'
    state ip-route.txt 'ip route'
    state ss.txt 'ss -s'
    if [ -d /sys/class/infiniband ]; then
        if have rdma; then take "$host/rdma-link.txt" shown rdma link show; fi
        if have ibstat; then take "$host/ibstat.txt" shown ibstat; elif have ibv_devinfo; then take "$host/ibv_devinfo.txt" shown ibv_devinfo; fi
        if have ibdev2netdev; then take "$host/ibdev2netdev.txt" shown ibdev2netdev; fi
        state ib-counters.txt 'cat /sys/class/infiniband/*/ports/*/counters/*' 'cd /sys/class/infiniband && grep -H . */ports/*/counters/* */ports/*/hw_counters/* 2>/dev/null | grep -v ":0$"'
    else
        note 'not here' "RDMA adapters (/sys/class/infiniband)"
    fi
}

clock() {
    if have chronyc; then
        take "$host/chronyc-tracking.txt" shown chronyc tracking
    elif have ntpq; then
        take "$host/ntpq.txt" shown ntpq -p
    else
        note 'not here' "chronyc, ntpq: no word about the clock's offset"
    fi
    if have timedatectl; then take "$host/timedatectl.txt" shown timedatectl; fi
}

outputs=''
slurm
for path in "$@"; do logs "$path"; done
if [ $# = 0 ]; then
    for path in $outputs; do [ ! -f "$path" ] || logs "$path"; done
    [ -n "$outputs" ] || note 'not asked' "logs of the ranks: give the PATH where they lie"
fi
kernel
gpus
machine
network
clock
kubernetes

[ -z "$full" ] || printf 'firstfault collect: %s: the disk is full or cannot be written; what is there is not complete\n' "$out" >&2
rm -rf "$scratch"
summary="$got got, $missing not (manifest.txt says which)"
if [ -n "$archive" ]; then
    case $archive in *.tar) packed='' ;; *) packed=z ;; esac
    tar -c${packed}f "$archive.part" -C "$out" . 2>/dev/null && mv "$archive.part" "$archive" ||
        { rm -f "$archive.part"; fail "$archive: cannot be written"; }
    rm -rf "$out"
    trap - EXIT
    printf 'firstfault collect: %s: %s\n' "$archive" "$summary" >&2
    printf '%s\n' "$archive"
else
    trap - EXIT
    printf 'firstfault collect: %s: %s\n' "$out" "$summary" >&2
    printf '%s\n' "$out"
fi
[ -z "$full" ] || exit 1

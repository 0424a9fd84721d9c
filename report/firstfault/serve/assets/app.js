// The local page: uploads what is dropped or pasted file by file, shows how far the diagnosis is, the report, SQL.
"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const SHOWN_PASTE = 1 << 20; // longer text is kept beside the box, which would become slow
  const AT_ONCE = 3;
  const QUESTIONS = {
    "The verdict": "SELECT * FROM verdicts",
    "The first errors of each rank": "SELECT rank, host, path, line, time, entry, message\nFROM lines WHERE level IN ('ERROR', 'FATAL') AND rank IS NOT NULL\nQUALIFY row_number() OVER (PARTITION BY rank ORDER BY time, path, line) = 1\nORDER BY time, rank",
    "The last line of each rank": "SELECT rank, host, path, line, time, message\nFROM lines WHERE rank IS NOT NULL\nQUALIFY row_number() OVER (PARTITION BY rank ORDER BY time DESC, path, line DESC) = 1\nORDER BY rank",
    "Who is behind": "SELECT rank, max(step) AS step\nFROM progress WHERE rank IS NOT NULL GROUP BY rank ORDER BY step, rank",
    "Errors folded over ranks": "SELECT entry, class, count(*) AS lines, list_sort(list_distinct(list(rank))) AS ranks\nFROM lines WHERE entry IS NOT NULL GROUP BY entry, class ORDER BY lines DESC, entry",
    "What was not understood": "SELECT severity, kind, path, line, count, detail\nFROM problems ORDER BY severity, kind, path, line",
    "All tables and views": "SHOW TABLES",
  };
  let shown = null; // the job that is looked at
  let uploads = null; // the uploads of this page that are going on
  let longPaste = null;

  async function ask(path, method = "GET", body = undefined) {
    const answer = await fetch(path, {
      method,
      headers: { "X-Firstfault": "1", ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    let value = {};
    try { value = text ? JSON.parse(text) : {}; } catch { value = { error: text }; }
    if (!answer.ok) throw new Error(value.error || `${answer.status} ${answer.statusText}`);
    return value;
  }

  const size = (bytes) => bytes < 1 << 20 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`;

  // ------------------------------------------------------------------ what was dropped

  async function walk(entry, prefix, found) {
    if (entry.isFile) {
      found.push([prefix + entry.name, await new Promise((done, fail) => entry.file(done, fail))]);
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((done, fail) => reader.readEntries(done, fail));
      if (!some.length) return;
      for (const one of some) await walk(one, `${prefix}${entry.name}/`, found);
    }
  }

  async function dropped(transfer) {
    const entries = [...transfer.items].map((item) => item.webkitGetAsEntry && item.webkitGetAsEntry()).filter(Boolean);
    const found = [];
    if (entries.length) for (const entry of entries) await walk(entry, "", found);
    else for (const file of transfer.files) found.push([file.name, file]);
    return found;
  }

  const chosen = (input) => [...input.files].map((file) => [file.webkitRelativePath || file.name, file]);

  // ------------------------------------------------------------------ upload

  function put(job, path, blob, moved) {
    return new Promise((done, fail) => {
      const request = new XMLHttpRequest();
      uploads.requests.add(request);
      request.open("PUT", `/api/jobs/${job}/file?path=${encodeURIComponent(path)}`);
      request.setRequestHeader("X-Firstfault", "1");
      let before = 0;
      request.upload.onprogress = (event) => { moved(event.loaded - before); before = event.loaded; };
      request.onloadend = () => {
        uploads && uploads.requests.delete(request);
        if (request.status === 201) { moved(blob.size - before); done(); return; }
        let why = request.status ? `${request.status} ${request.statusText}` : "the connection broke; is `firstfault serve` still running?";
        try { why = JSON.parse(request.responseText).error || why; } catch { /* no words from the server */ }
        fail(new Error(`${path}: ${why}`));
      };
      request.send(blob);
    });
  }

  async function upload(files, name) {
    files = files.filter(([, blob]) => blob.size > 0);
    if (!files.length) { trouble("There is nothing in it: no file, or empty files only."); return; }
    clear();
    const total = files.reduce((sum, [, blob]) => sum + blob.size, 0);
    const job = await ask("/api/jobs", "POST", { name });
    uploads = { requests: new Set(), stopped: false };
    shown = job.id;
    let moved = 0;
    const show = () => working(name, moved / total, `${size(moved)} of ${size(total)} copied, ${files.length} ${files.length === 1 ? "file" : "files"}`);
    show();
    const waiting = [...files];
    const worker = async () => {
      for (let next = waiting.shift(); next && !uploads.stopped; next = waiting.shift()) {
        await put(job.id, next[0], next[1], (bytes) => { moved += bytes; show(); });
      }
    };
    try {
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
      if (uploads.stopped) return;
      await ask(`/api/jobs/${job.id}/diagnose`, "POST");
    } catch (error) {
      if (uploads.stopped) return;
      uploads.stopped = true;
      for (const request of uploads.requests) request.abort();
      working(name, 0, "");
      trouble(error.message);
      await ask(`/api/jobs/${job.id}`, "DELETE").catch(() => {});
      return;
    } finally {
      uploads = null;
    }
    location.hash = job.id;
    follow(job.id);
  }

  // ------------------------------------------------------------------ what is shown

  function clear() {
    for (const id of ["give", "work", "result"]) at(id).hidden = true;
    at("trouble").textContent = "";
    at("table").replaceChildren();
    at("sql-note").textContent = "";
    at("report").removeAttribute("src");
  }

  function working(name, share, note) {
    at("work").hidden = at("bar").hidden = at("stop").hidden = false;
    at("work-title").textContent = name;
    if (share === null) at("bar").removeAttribute("value"); else at("bar").value = share;
    at("work-note").textContent = note;
  }

  function trouble(text) {
    at("work").hidden = at("give").hidden = false;
    at("bar").hidden = at("stop").hidden = true;
    at("trouble").textContent = text;
  }

  const PHASES = { start: "starts", read: "reads", write: "writes the timeline", correlate: "looks for what failed first" };

  async function follow(id) {
    for (;;) {
      let job;
      try { job = await ask(`/api/jobs/${id}`); } catch (error) { if (shown === id) { clear(); trouble(error.message); } return; }
      if (shown !== id) return;
      if (job.state === "done") { clear(); await result(job); return; }
      if (job.state === "failed") { clear(); working(job.name, 0, ""); trouble(job.message); list(); return; }
      clear();
      const share = job.phase === "read" && job.total ? job.done / job.total : null;
      const read = share === null ? "" : `, ${size(job.done)} of ${size(job.total)}`;
      working(job.name, share, job.state === "waiting" ? "waits for another job" : `${PHASES[job.phase] || job.phase}${read}`);
      await new Promise((done) => setTimeout(done, 300));
    }
  }

  async function result(job) {
    at("result").hidden = false;
    at("result-title").textContent = job.name;
    at("report").src = `/jobs/${job.id}/report.html`;
    at("links").replaceChildren(...[
      ["report.html", "the report in a tab of its own"], ["report.md", "Markdown"],
      ["diagnosis.json", "JSON"], ["timeline.duckdb", "timeline (DuckDB)"],
    ].map(([name, text]) => {
      const link = document.createElement("a");
      link.href = `/jobs/${job.id}/${name}`;
      link.textContent = text;
      if (name.endsWith(".html") || name.endsWith(".json")) { link.target = "_blank"; link.rel = "noopener"; }
      return link;
    }));
    list();
  }

  async function list() {
    const { jobs, root } = await ask("/api/jobs");
    at("root").textContent = root;
    at("jobs").hidden = jobs.length === 0;
    at("job-list").replaceChildren(...jobs.map((job) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = `#${job.id}`;
      link.textContent = job.name;
      const state = document.createElement("span");
      state.textContent = job.state;
      state.className = job.state;
      const remove = document.createElement("button");
      remove.type = "button";
      remove.textContent = "Remove";
      remove.onclick = async () => { await ask(`/api/jobs/${job.id}`, "DELETE").catch(() => {}); if (shown === job.id) start(); else list(); };
      item.append(link, state, remove);
      return item;
    }));
    return jobs;
  }

  function start() {
    shown = null;
    clear();
    if (location.hash) history.replaceState(null, "", "/");
    at("give").hidden = false;
    return list();
  }

  async function query() {
    const job = shown;
    at("ask").disabled = true;
    at("sql-note").textContent = "asks ...";
    try {
      const answer = await ask(`/api/jobs/${job}/sql`, "POST", { query: at("query").value });
      const table = document.createElement("table");
      const head = table.createTHead().insertRow();
      for (const name of answer.names) { const cell = document.createElement("th"); cell.textContent = name; head.append(cell); }
      const body = table.createTBody();
      for (const row of answer.rows) {
        const line = body.insertRow();
        for (const value of row) {
          const cell = line.insertCell();
          cell.textContent = value === null ? "NULL" : value;
          if (value === null) cell.className = "null"; else if (typeof value === "number") cell.className = "number";
        }
      }
      at("table").replaceChildren(table);
      at("sql-note").textContent = `${answer.rows.length} rows${answer.more ? ", and more that are not shown" : ""}`;
    } catch (error) {
      at("table").replaceChildren();
      at("sql-note").textContent = error.message;
    } finally {
      at("ask").disabled = false;
    }
  }

  // ------------------------------------------------------------------ wiring

  const guarded = (work) => (...given) => Promise.resolve(work(...given)).catch((error) => { clear(); trouble(error.message); });
  const named = (files) => files.length === 1 ? files[0][0] : `${files[0] ? files[0][0].split("/")[0] : "nothing"}${files.length > 1 ? ` (${files.length} files)` : ""}`;
  const give = guarded((files) => upload(files, named(files)));

  at("pick-files").onclick = (event) => { event.stopPropagation(); at("files").click(); };
  at("pick-folder").onclick = (event) => { event.stopPropagation(); at("folder").click(); };
  at("drop").onkeydown = (event) => { if (event.target === at("drop") && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); at("files").click(); } };
  for (const id of ["files", "folder"]) at(id).onchange = () => { const files = chosen(at(id)); at(id).value = ""; if (files.length) give(files); };
  for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());
  at("drop").addEventListener("dragover", () => at("drop").classList.add("over"));
  at("drop").addEventListener("dragleave", () => at("drop").classList.remove("over"));
  window.addEventListener("drop", guarded(async (event) => {
    at("drop").classList.remove("over");
    if (uploads) return;
    const files = await dropped(event.dataTransfer);
    await upload(files, named(files));
  }));

  at("paste").addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text");
    if (text.length <= SHOWN_PASTE) return;
    event.preventDefault();
    longPaste = new Blob([text]);
    at("paste").value = "";
    at("paste").placeholder = text.slice(0, 300);
    at("paste-note").textContent = `${size(longPaste.size)} pasted; too long to be shown here`;
  });
  at("paste").addEventListener("input", () => { if (at("paste").value) { longPaste = null; at("paste-note").textContent = ""; } });
  at("paste-go").onclick = guarded(async () => {
    const blob = longPaste || new Blob([at("paste").value]);
    if (!blob.size) { at("paste-note").textContent = "nothing is pasted yet"; return; }
    longPaste = null;
    at("paste-note").textContent = "";
    await upload([["pasted.log", blob]], "pasted log");
  });

  at("stop").onclick = guarded(async () => {
    if (uploads) { uploads.stopped = true; for (const request of uploads.requests) request.abort(); }
    const job = shown;
    if (job) await ask(`/api/jobs/${job}`, "DELETE").catch(() => {});
    await start();
  });
  at("new").onclick = (event) => { event.preventDefault(); if (!uploads) start(); };
  at("ask").onclick = query;
  at("query").onkeydown = (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) query(); };
  at("questions").replaceChildren(...Object.keys(QUESTIONS).map((name) => new Option(name, name)));
  at("questions").onchange = () => { at("query").value = QUESTIONS[at("questions").value]; query(); };
  at("query").value = Object.values(QUESTIONS)[0];
  const open = () => { const id = location.hash.slice(1); if (id && id !== shown) { shown = id; clear(); follow(id); } };
  window.addEventListener("hashchange", open);
  window.addEventListener("beforeunload", (event) => { if (uploads && !uploads.stopped) event.preventDefault(); });
  list().then((jobs) => {
    if (location.hash) open();
    else if (jobs.length && jobs[0].state !== "done" && jobs[0].state !== "open") location.hash = jobs[0].id;
    else if (jobs.length === 1 && jobs[0].state === "done") location.hash = jobs[0].id;
  }).catch((error) => trouble(error.message));
})();

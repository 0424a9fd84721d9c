export function place(): { readonly root: string; readonly node: string; readonly server: string };
export function install(): void;

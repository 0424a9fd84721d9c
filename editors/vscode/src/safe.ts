/**
 * Text from logs on its way to people. A log may hold anything: markup, links that run commands,
 * characters that reverse a line or hide in it. Nothing of that acts on what is shown.
 */

const HIDDEN =
  // controls but tab and newline; soft hyphen, zero width, bidirectional marks and overrides, separators, byte order mark, tags
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** Characters that cannot be seen, or that move others, written as `\u202e`. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (one) => `\\u${(one.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`);
}

/** At most `limit` UTF-16 units, never half of a character. */
export function bounded(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const cut = text.slice(0, limit - 1);
  return `${/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut}…`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** For element content and quoted attributes of HTML. */
export function html(text: string): string {
  return visible(text).replace(/[&<>"']/g, (one) => ENTITIES[one] ?? one);
}

/** For notifications and labels, which make `[text](command:…)` a link and `$(name)` an icon. */
export function notice(text: string, limit = 300): string {
  const flat = visible(text.replace(/\s+/g, " ").trim());
  return bounded(flat, limit).replaceAll("[", "⟦").replaceAll("]", "⟧").replaceAll("$(", "$\u2009(");
}

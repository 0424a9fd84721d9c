/** The script inside the panel: tells the extension which number was clicked. */
declare function acquireVsCodeApi(): { postMessage(message: unknown): void };

const host = acquireVsCodeApi();

document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("button") : null;
  if (button === null) return;
  const { open, copy, again, settings } = button.dataset;
  if (open !== undefined) host.postMessage({ open: Number(open) });
  else if (copy !== undefined) host.postMessage({ copy: Number(copy) });
  else if (again !== undefined) host.postMessage({ again: true });
  else if (settings !== undefined) host.postMessage({ settings: true });
});

window.addEventListener("message", (event: MessageEvent<{ said?: string }>) => {
  const said = document.getElementById("said");
  if (said !== null && typeof event.data.said === "string") said.textContent = event.data.said;
});

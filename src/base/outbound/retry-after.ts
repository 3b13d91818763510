// When a server that refused a request wants to be asked again.

/** `Retry-After` in either form; null when there is none to be understood. */
export function retryAfterMs(header: string, nowMs: number): number | null {
  if (/^\s*\d+(\.\d+)?\s*$/.test(header)) return Number(header) * 1000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}

/** Server-sent events, as the HTML standard defines them: https://html.spec.whatwg.org/multipage/server-sent-events.html */

export interface SseMessage {
  /** Value that a client returns as `Last-Event-ID`; an empty string resets it, absence keeps the previous one. */
  id?: string;
  event: string;
  data: unknown;
}

/** One message. JSON has no raw line breaks, so one `data` line holds it. */
export function sseMessage({ id, event, data }: SseMessage): string {
  const idLine = id === undefined ? '' : `id: ${id}\n`;
  return `${idLine}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** A comment line, which clients ignore; keeps the connection alive. */
export function sseComment(text: string): string {
  return `: ${text}\n\n`;
}

/** Client's reconnect delay. */
export function sseRetry(milliseconds: number): string {
  return `retry: ${milliseconds}\n\n`;
}

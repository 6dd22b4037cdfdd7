/** Server-sent events, as the HTML standard defines them: https://html.spec.whatwg.org/multipage/server-sent-events.html */

export interface SseMessage {
  /** What a client sends back as `Last-Event-ID`; empty: nothing. Without it, the client keeps the one before. */
  id?: string;
  event: string;
  data: unknown;
}

/** One message. JSON has no raw line breaks, so one `data` line holds it. */
export function sseMessage({ id, event, data }: SseMessage): string {
  const idLine = id === undefined ? '' : `id: ${id}\n`;
  return `${idLine}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** A line that clients ignore: it keeps the connection alive. */
export function sseComment(text: string): string {
  return `: ${text}\n\n`;
}

/** How long a client should wait before it connects again. */
export function sseRetry(milliseconds: number): string {
  return `retry: ${milliseconds}\n\n`;
}

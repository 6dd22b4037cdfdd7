import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';

export interface SseClientMessage {
  /** Absent if the message has none. */
  id: string | undefined;
  event: string;
  data: Record<string, unknown>;
}

/** A client of server-sent events on a raw connection, so that a test can stop reading. */
export class SseClient {
  comments = 0;
  private readonly response: IncomingMessage;
  private readonly messages: SseClientMessage[] = [];
  private text = '';
  private ended = false;
  private wake: () => void = () => undefined;

  constructor(response: IncomingMessage) {
    this.response = response;
    response.setEncoding('utf8');
    response.on('data', (text: string) => this.take(text));
    response.on('close', () => {
      this.ended = true;
      this.wake();
    });
    response.on('error', () => undefined);
  }

  get contentType(): string {
    return this.response.headers['content-type'] ?? '';
  }

  /** All remaining messages; resolves when the server closes the connection. */
  async rest(): Promise<SseClientMessage[]> {
    const messages: SseClientMessage[] = [];
    await this.until(
      () => false,
      (message) => messages.push(message),
    );
    return messages;
  }

  /** Returns messages up to the first that `isLast` accepts, or the end of the connection. */
  async until(
    isLast: (message: SseClientMessage) => boolean,
    onMessage: (message: SseClientMessage) => unknown = () => undefined,
  ): Promise<void> {
    for (;;) {
      const message = this.messages.shift();
      if (message !== undefined) {
        onMessage(message);
        if (isLast(message)) return;
      } else if (this.ended) {
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.wake = resolve;
        });
      }
    }
  }

  pause(): void {
    this.response.pause();
  }

  resume(): void {
    this.response.resume();
  }

  close(): void {
    this.response.destroy();
  }

  private take(text: string): void {
    const blocks = (this.text + text).split('\n\n');
    this.text = blocks.pop() ?? '';
    for (const block of blocks) {
      if (block.startsWith(':')) this.comments += 1;
      const fields = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s)));
      if (fields.data === undefined) continue;
      this.messages.push({ id: fields.id, event: fields.event, data: JSON.parse(fields.data) });
    }
    this.wake();
  }
}

/** Connects; resolves when the headers have arrived. @param caller the API key, or the headers instead of it */
export async function openStream(
  url: string,
  caller: string | { cookie: string },
  lastEventId?: string,
): Promise<SseClient> {
  const headers = {
    ...(typeof caller === 'string' ? { authorization: `Bearer ${caller}` } : caller),
    ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
  };
  const request = get(url, { headers, agent: false });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return new SseClient(response);
}

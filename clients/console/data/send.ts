import { Zerofleet } from '../../typescript/index.js';
import { client } from '../app/connection.js';

/** Statuses whose answers have no body. */
const EMPTY = new Set([204, 304]);

/**
 * A client that reports how much of its requests was sent. Fetch does not tell, and cannot send a file of any size over
 * HTTP/1.1 as a stream: files are sent as they lie on the disk.
 * @param report called with the bytes of the present request
 */
export function sendingClient(report: (sent: number) => void, signal: AbortSignal): Zerofleet {
  const send = async (input: RequestInfo | URL): Promise<Response> => {
    const request = input as Request;
    const body = request.method === 'GET' ? null : await request.blob();
    return new Promise((resolve, reject) => {
      const exchange = new XMLHttpRequest();
      const abort = () => {
        exchange.abort();
        reject(new DOMException('aborted', 'AbortError'));
      };
      if (signal.aborted) return abort();
      signal.addEventListener('abort', abort, { once: true });
      exchange.open(request.method, request.url);
      request.headers.forEach((value, name) => {
        exchange.setRequestHeader(name, value);
      });
      exchange.upload.onprogress = ({ loaded }) => report(loaded);
      exchange.onerror = () => reject(new TypeError('no answer'));
      exchange.onload = () => {
        const { status, responseText } = exchange;
        const headers = { 'content-type': exchange.getResponseHeader('content-type') ?? '' };
        resolve(new Response(EMPTY.has(status) ? null : responseText, { status, headers }));
      };
      exchange.send(body);
    });
  };
  return new Zerofleet({ ...client.options, fetch: send });
}

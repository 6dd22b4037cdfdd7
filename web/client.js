/** The HTTP API as this page uses it: JSON requests with the bearer key, and streams of server-sent events. */

const KEY_STORAGE = 'zerofleet.api-key';
const MAX_RECONNECT_MS = 10_000;

/** An error that the API answered, or `offline` when it did not answer. */
export class ApiError extends Error {
  /** @param {{status: number, code: string, detail: string}} problem */
  constructor({ status, code, detail }) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

export const apiKey = {
  get: () => localStorage.getItem(KEY_STORAGE),
  /** @param {string} key */
  set: (key) => localStorage.setItem(KEY_STORAGE, key),
  forget: () => localStorage.removeItem(KEY_STORAGE),
};

/** Reads JSON. @param {string} path */
export function get(path) {
  return request('GET', path);
}

/** Sends JSON, or nothing. @param {string} path @param {unknown} [body] */
export function post(path, body) {
  return request('POST', path, body);
}

async function request(method, path, body) {
  const response = await send(path, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });
  return response.status === 204 ? null : response.json();
}

async function send(path, { headers = {}, ...options } = {}) {
  let response;
  try {
    response = await fetch(path, {
      ...options,
      headers: { ...headers, authorization: `Bearer ${apiKey.get()}` },
    });
  } catch (cause) {
    if (options.signal?.aborted) throw cause;
    throw new ApiError({ status: 0, code: 'offline', detail: 'The server does not answer.' });
  }
  if (!response.ok) throw new ApiError(await problemOf(response));
  return response;
}

async function problemOf(response) {
  const problem = await response.json().catch(() => ({}));
  return {
    status: response.status,
    code: problem.code ?? 'unknown',
    detail: problem.detail ?? response.statusText,
  };
}

/**
 * Follows a job's stream from its beginning to its end. A connection that breaks is made again after the last message
 * that was handled, so `onMessages` sees each entry once.
 *
 * EventSource cannot send a bearer key; fetch can.
 *
 * @param {string} path
 * @param {{signal: AbortSignal, onMessages: (messages: {event: string, data: object}[]) => void, onLive: (live: boolean) => void}} options
 */
export async function follow(path, { signal, onMessages, onLive }) {
  let lastId = '';
  let failures = 0;
  while (!signal.aborted) {
    try {
      const response = await send(path, {
        signal,
        headers: lastId === '' ? {} : { 'last-event-id': lastId },
      });
      onLive(true);
      for await (const messages of readMessages(response.body)) {
        failures = 0;
        // That of a reset is empty: nothing of before is there to go on after.
        lastId = messages.findLast((message) => message.id !== null)?.id ?? lastId;
        onMessages(messages);
        if (messages.some((message) => message.event === 'end')) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500) throw error;
    }
    onLive(false);
    failures += 1;
    await pause(Math.min(MAX_RECONNECT_MS, 500 * 2 ** failures), signal);
  }
}

/** Messages of an event stream, as many at a time as one read brought. */
async function* readMessages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += value;
      const blocks = text.split('\n\n');
      text = blocks.pop();
      const messages = blocks.map(parseMessage).filter((message) => message !== null);
      if (messages.length > 0) yield messages;
    }
  } finally {
    // Closes the connection when the reader leaves early. Rejects when the connection broke, which leaves nothing to close.
    await reader.cancel().catch(() => undefined);
  }
}

/** One block of lines; null for a comment or a `retry`. */
function parseMessage(block) {
  const fields = { id: null, event: 'message', data: '' };
  for (const line of block.split('\n')) {
    const colon = line.indexOf(': ');
    const name = line.slice(0, colon);
    if (colon > 0 && name in fields) fields[name] = line.slice(colon + 2);
  }
  return fields.data === '' ? null : { ...fields, data: JSON.parse(fields.data) };
}

/** Ends early, and without an error, when the signal is aborted. */
function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const stop = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      resolve();
    };
    const timer = setTimeout(stop, milliseconds);
    signal.addEventListener('abort', stop, { once: true });
  });
}

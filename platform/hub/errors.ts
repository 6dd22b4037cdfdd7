import { ZerofleetError } from '../../contracts/index.js';

interface Context {
  /** URI in messages. */
  name: string;
  /** False for a server that a download was redirected to. */
  isHub: boolean;
  hasToken: boolean;
  endpoint: string;
}

/** Tells how to give the server a token. */
const SET_TOKEN = 'set the token of an account that may read it (PUT /v1/hub-token)';

/** Error of an answer with status 300 or above. */
export function statusError(answer: Response, context: Context): ZerofleetError {
  const { status, headers } = answer;
  const { name, isHub, hasToken } = context;
  if (status === 429) {
    const waitMs = waitOf(headers.get('retry-after'));
    const when = waitMs === null ? 'later' : `in ${Math.ceil(waitMs / 1000)} s`;
    const better = hasToken ? '' : ', or set a token, which has higher limits (PUT /v1/hub-token)';
    return new ZerofleetError(
      'hub_throttled',
      `the Hub limits requests for ${name}: repeat ${when}${better}`,
      {
        details: { wait_ms: waitMs },
      },
    );
  }
  // The address of a download is signed for some minutes; the next attempt gets a new one.
  if (!isHub) return unavailable(name, `the server of its files answers with status ${status}`);
  if (status === 404) return new ZerofleetError('dataset_source_missing', missing(headers, context));
  if (status === 401 || status === 403)
    return new ZerofleetError('dataset_source_denied', denied(answer, context));
  if (status >= 500 || status === 408) return unavailable(name, `it answers with status ${status}`);
  return new ZerofleetError(
    'dataset_source_denied',
    `the Hub refuses ${name} with status ${status}: check the URI`,
  );
}

function missing(headers: Headers, { name, hasToken }: Context): string {
  const code = headers.get('x-error-code');
  if (code === 'RevisionNotFound') return `the repository of ${name} has no such branch, tag or commit`;
  if (code === 'EntryNotFound') return `the repository has no ${name}`;
  return `there is no ${name}${hasToken ? '' : `; if it is private, ${SET_TOKEN}`}`;
}

function denied({ status, headers }: Response, { name, hasToken, endpoint }: Context): string {
  const [, page = ''] = /^hf:\/\/((?:datasets\/)?[^/@]+\/[^/@]+)/.exec(name) ?? [];
  if (headers.get('x-error-code') === 'GatedRepo') {
    const accept = `accept its conditions at ${endpoint.replace(/\/$/, '')}/${page}`;
    return hasToken
      ? `${name} is gated: ${accept} with the account of the project's token`
      : `${name} is gated: ${accept}, then set the token of that account (PUT /v1/hub-token)`;
  }
  if (!hasToken) return `there is no public ${name}: check the name; if it is private, ${SET_TOKEN}`;
  const what = status === 401 ? 'the token has expired, or ' : '';
  return `the project's token may not read ${name}: ${what}${SET_TOKEN}`;
}

export function unavailable(name: string, reason: string, cause?: unknown): ZerofleetError {
  return new ZerofleetError('hub_unavailable', `the Hub does not deliver ${name}: ${reason}`, { cause });
}

export function corrupt(name: string, reason: string): ZerofleetError {
  return new ZerofleetError(
    'dataset_source_corrupt',
    `${name} arrived damaged: ${reason}; repeat the request, or choose another mirror`,
  );
}

/** True if another attempt would end the same way. */
export function notTemporary(error: unknown): boolean {
  return !(error instanceof ZerofleetError && ['hub_unavailable', 'hub_throttled'].includes(error.code));
}

/** Time for which the server asked to wait; null if it did not. */
export function retryAfterMs(error: unknown): number | null {
  const { wait_ms: waitMs } = error instanceof ZerofleetError ? error.details : {};
  return typeof waitMs === 'number' ? waitMs : null;
}

/** `Retry-After` as seconds or a date. */
function waitOf(text: string | null): number | null {
  if (text === null) return null;
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}

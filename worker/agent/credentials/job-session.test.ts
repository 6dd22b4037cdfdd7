import { once } from 'node:events';
import t from 'tap';
import { ZerofleetError } from '../../../contracts/index.js';
import type { SessionCredentials } from '../../../contracts/rank-protocol.js';
import { JobSession, type JobSessionOptions } from './job-session.js';

const QUICK = { attempts: 3, first_delay_ms: 5, max_delay_ms: 20 };

const refusal = () =>
  new ZerofleetError('credentials_unavailable', 'no', {
    cause: Object.assign(new Error('no'), { name: 'AccessDenied' }),
  });
const transient = () => new ZerofleetError('credentials_unavailable', 'not now');

/** Returns an issuer of numbered sessions of `life_ms`; an error from `fails` is thrown instead. */
function issuer(lifeMs: number, fails: (number: number) => Error | null = () => null) {
  const state = { requests: 0, failed: 0, at: [] as number[] };
  const assume = async (): Promise<SessionCredentials> => {
    state.requests += 1;
    state.at.push(performance.now());
    const error = fails(state.requests);
    if (error) throw error;
    const expiresAt = new Date(Date.now() + lifeMs).toISOString();
    return {
      access_key_id: `${state.requests}`,
      secret_access_key: 's',
      session_token: 't',
      expires_at: expiresAt,
    };
  };
  const options: JobSessionOptions = {
    assume,
    retry: QUICK,
    signal: new AbortController().signal,
    onFailed: () => {
      state.failed += 1;
    },
  };
  return { state, options };
}

/** Resolves with the keys of the first sessions. */
async function keysOf(session: JobSession, count: number): Promise<string[]> {
  const keys: string[] = [];
  const full = new EventTarget();
  const done = once(full, 'full');
  const unwatch = session.watch(({ access_key_id }) => {
    keys.push(access_key_id);
    if (keys.length === count) full.dispatchEvent(new Event('full'));
  });
  await done;
  unwatch();
  return keys;
}

t.test('credentials are renewed at half of their lifetime until the session is closed', async (t) => {
  const { state, options } = issuer(200);
  const session = await JobSession.open(options);
  t.strictSame(await keysOf(session, 4), ['1', '2', '3', '4']);
  const [first = 0, second = 0] = state.at;
  t.ok(second - first >= 95, 'not earlier');
  await session.close();
  await session.close();
  const { requests } = state;
  await new Promise((resolve) => setTimeout(resolve, 300));
  t.equal(state.requests, requests);
});

t.test('a failed renewal is retried without limit and reported once', async (t) => {
  const { state, options } = issuer(60, (number) => (number > 1 && number < 12 ? refusal() : null));
  const session = await JobSession.open(options);
  t.strictSame(await keysOf(session, 2), ['1', '12']);
  t.equal(state.failed, 1);
  await session.close();
});

t.test('the first credentials', async (t) => {
  await t.test('are requested as often as the policy says', async (t) => {
    const { state, options } = issuer(1000, (number) => (number < 3 ? transient() : null));
    await (await JobSession.open(options)).close();
    t.equal(state.requests, 3);
    const never = issuer(1000, transient);
    await t.rejects(JobSession.open(never.options), { code: 'credentials_unavailable' });
    t.equal(never.state.requests, 3);
  });
  await t.test('are not requested again after a refusal, nor after an abort', async (t) => {
    const refused = issuer(1000, refusal);
    await t.rejects(JobSession.open(refused.options), { code: 'credentials_unavailable' });
    t.equal(refused.state.requests, 1);
    const { state, options } = issuer(1000);
    await t.rejects(JobSession.open({ ...options, signal: AbortSignal.abort(new Error('over')) }), /over/);
    t.equal(state.requests, 0);
  });
});

t.test('a clock that is hours off causes no flood of requests', async (t) => {
  for (const lifeMs of [-7_200_000, 7_200_000]) {
    const { state, options } = issuer(lifeMs);
    const session = await JobSession.open(options);
    await new Promise((resolve) => setTimeout(resolve, 200));
    t.equal(state.requests, 1, `${lifeMs} ms`);
    await session.close();
  }
});

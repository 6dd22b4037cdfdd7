import type { JobEvent, JobLog, JobMetric, StreamEntry } from '../../contracts/index.js';
import { jobKey, redisCall, type StoreContext } from '../core/context.js';
import { formatPosition, parsePosition } from './stream-position.js';
import type { JobStreams, StreamKind, WaitOptions } from './streams-port.js';

/** `[id, [field, value, …]]`, the form of an entry in Redis' replies. */
type RawEntry = [id: string, fields: string[]];
type Place = Pick<StreamEntry, 'seq' | 'position'>;

const ENTRY_OF: { readonly [K in StreamKind]: (place: Place, fields: string[]) => StreamEntry } = {
  event: eventOf,
  metric: metricOf,
  log: logOf,
};
const ALL_KINDS = Object.keys(ENTRY_OF) as StreamKind[];

export function jobStreams(context: StoreContext): JobStreams {
  return {
    async readStream(jobId, after, limit, kinds = ALL_KINDS) {
      const [stream, ...lists] = await context.commands.run('read_stream', {
        job_id: jobId,
        after: after === null ? undefined : parsePosition(after),
        limit,
        kinds,
      });
      const placeOf = (id: string): Place => {
        const [seq = 0, stamp = 0] = id.split('-').map(Number);
        return { seq, position: formatPosition({ stream: stream as string, seq, stamp }) };
      };
      // Each list holds the first `limit` of its kind, so the first `limit` of all are among them.
      return kinds
        .flatMap((kind, i) =>
          ((lists as RawEntry[][])[i] ?? []).map(([id, fields]) => ENTRY_OF[kind](placeOf(id), fields)),
        )
        .sort((a, b) => a.seq - b.seq)
        .slice(0, limit);
    },

    waitStream(jobId, after, options) {
      const seen = after === null ? null : parsePosition(after);
      // A different last entry, even before the position, means new entries or a lost position.
      const hasMore = ([stream, seq, stamp]: (string | null)[]) =>
        stream != null &&
        (seen === null
          ? seq !== '0'
          : stream !== seen.stream || Number(seq) !== seen.seq || Number(stamp) !== seen.stamp);
      const fields = ['stream', 'seq', 'seq_stamp'];
      return waitFields(context, { jobId, fields, channel: 'wake' }, hasMore, options);
    },

    waitVersion: (jobId, version, options) =>
      waitFields(
        context,
        { jobId, fields: ['state_version'], channel: 'control' },
        ([now]) => Number(now) !== version,
        options,
      ),
  };
}

/** Waits until fields of the record meet a condition; every change of them is published on the channel. */
async function waitFields(
  context: StoreContext,
  { jobId, fields, channel }: { jobId: string; fields: string[]; channel: string },
  areReached: (values: (string | null)[]) => boolean,
  { timeoutMs, signal }: WaitOptions,
): Promise<boolean> {
  const key = jobKey(context, jobId);
  const hasMore = async () => areReached(await redisCall(context.redis.hmget(key, ...fields)));
  if (await hasMore()) return true;

  const waiting = new AbortController();
  const stop = () => waiting.abort();
  const timer = setTimeout(stop, timeoutMs);
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted) stop();
  try {
    return await untilWoken(context, `${key}:${channel}`, hasMore, waiting.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

/** Checks when the subscription is active and after each message; returns false when `signal` ends the wait. */
async function untilWoken(
  context: StoreContext,
  channel: string,
  hasMore: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<boolean> {
  let wake: () => void = () => undefined;
  let woken = new Promise<void>((resolve) => {
    wake = resolve;
  });
  signal.addEventListener('abort', () => wake(), { once: true });
  const unsubscribe = await context.subscriptions.add(channel, () => wake());
  try {
    while (!signal.aborted) {
      if (await hasMore()) return true;
      await woken;
      woken = new Promise((resolve) => {
        wake = resolve;
      });
    }
    return false;
  } finally {
    await unsubscribe();
  }
}

function eventOf(place: Place, fields: string[]): JobEvent {
  const [, type = '', , at = '', , data = '{}'] = fields;
  return { ...place, kind: 'event', type, at, data: JSON.parse(data) };
}

function metricOf(place: Place, fields: string[]): JobMetric {
  const [, text = '{}'] = fields;
  return { ...place, kind: 'metric', ...JSON.parse(text) };
}

function logOf(place: Place, fields: string[]): JobLog {
  const [, text = '{}'] = fields;
  return { ...place, kind: 'log', ...JSON.parse(text) };
}

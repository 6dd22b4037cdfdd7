import type { JobEvent, JobLog, JobMetric, StreamEntry } from '../../contracts/index.js';
import { jobKey, redisCall, type StoreContext } from './context.js';
import type { JobStreams, StreamKind, WaitOptions } from './port.js';

/** `[id, [field, value, …]]` as Redis lists a stream. */
type RawEntry = [id: string, fields: string[]];

const ENTRY_OF: { readonly [K in StreamKind]: (raw: RawEntry) => StreamEntry } = {
  event: eventOf,
  metric: metricOf,
  log: logOf,
};
const ALL_KINDS = Object.keys(ENTRY_OF) as StreamKind[];

export function jobStreams(context: StoreContext): JobStreams {
  return {
    async readStream(jobId, afterSeq, limit, kinds = ALL_KINDS) {
      const reply = await context.commands.run('read_stream', {
        job_id: jobId,
        after: afterSeq,
        limit,
        kinds,
      });
      // Each list holds the first `limit` of its kind, so the first `limit` of all together are among them.
      return kinds
        .flatMap((kind, i) => (reply as RawEntry[][])[i]?.map(ENTRY_OF[kind]) ?? [])
        .sort((a, b) => a.seq - b.seq)
        .slice(0, limit);
    },

    streamOf: (jobId) => redisCall(context.redis.hget(jobKey(context, jobId), 'stream')),

    waitStream: (jobId, afterSeq, options) =>
      waitField(context, { jobId, field: 'seq', channel: 'wake' }, afterSeq, options),

    waitVersion: (jobId, version, options) =>
      waitField(context, { jobId, field: 'state_version', channel: 'control' }, version, options),
  };
}

/** Waits until a counter of the record is greater than `seen`; whoever raises it publishes on the channel. */
async function waitField(
  context: StoreContext,
  { jobId, field, channel }: { jobId: string; field: string; channel: string },
  seen: number,
  { timeoutMs, signal }: WaitOptions,
): Promise<boolean> {
  const key = jobKey(context, jobId);
  const hasMore = async () => Number(await redisCall(context.redis.hget(key, field))) > seen;
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

/** Looks once the subscription stands and after each message; false when `signal` ends the wait. */
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

function seqOf(id: string): number {
  return Number(id.slice(0, id.indexOf('-')));
}

function eventOf([id, fields]: RawEntry): JobEvent {
  const [, type = '', , at = '', , data = '{}'] = fields;
  return { seq: seqOf(id), kind: 'event', type, at, data: JSON.parse(data) };
}

function metricOf([id, fields]: RawEntry): JobMetric {
  const [, text = '{}'] = fields;
  return { seq: seqOf(id), kind: 'metric', ...JSON.parse(text) };
}

function logOf([id, fields]: RawEntry): JobLog {
  const [, text = '{}'] = fields;
  return { seq: seqOf(id), kind: 'log', ...JSON.parse(text) };
}

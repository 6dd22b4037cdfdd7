import type { JobEvent, JobLog, JobMetric, StreamEntry } from '../../contracts/index.js';
import { jobKey, redisCall, type StoreContext } from '../core/context.js';
import { readBlocks } from './metric-blocks.js';
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
    readStream: async (jobId, after, limit, kinds = ALL_KINDS) =>
      (await read(context, { job_id: jobId, after: positionOf(after), limit, kinds }))
        .sort((a, b) => a.seq - b.seq)
        .slice(0, limit),

    readNewest: async (jobId, before, limit, kinds) =>
      (await read(context, { job_id: jobId, newest: true, before: positionOf(before), limit, kinds }))
        .sort((a, b) => b.seq - a.seq)
        .slice(0, limit),

    async readSteps(jobId, after, limit, { from, to }) {
      const steps = { from, ...(Number.isFinite(to) && { to }) };
      const kinds = ['metric'] as const;
      return (await read(context, { job_id: jobId, after: positionOf(after), limit, kinds, steps })).filter(
        (entry) => entry.kind === 'metric',
      );
    },

    readBlocks: (jobId, names) => readBlocks(context, jobId, names),

    async readMetrics(job_id, stream, ranges) {
      if (ranges.length === 0) return [];
      const [entries] = await context.commands.run('read_metrics', { job_id, stream, ranges });
      return (entries as RawEntry[]).map(([id, fields]) => metricOf(placeOf(stream, id), fields));
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

interface ReadCall extends Record<string, unknown> {
  job_id: string;
  limit: number;
  kinds: readonly StreamKind[];
}

/** Runs read_stream. Each of its lists holds the first `limit` of its kind, so the first `limit` of all are among them. */
async function read({ commands }: StoreContext, call: ReadCall): Promise<StreamEntry[]> {
  const [stream, ...lists] = await commands.run('read_stream', call);
  return call.kinds.flatMap((kind, i) =>
    ((lists as RawEntry[][])[i] ?? []).map(([id, fields]) =>
      ENTRY_OF[kind](placeOf(stream as string, id), fields),
    ),
  );
}

function placeOf(stream: string, id: string): Place {
  const [seq = 0, stamp = 0] = id.split('-').map(Number);
  return { seq, position: formatPosition({ stream, seq, stamp }) };
}

function positionOf(text: string | null) {
  return text === null ? undefined : parsePosition(text);
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

function metricOf({ seq, position }: Place, fields: string[]): JobMetric {
  const [, text = '{}'] = fields;
  // A curve reads 100,000 metrics; a spread takes six times as long as parsing.
  return Object.assign({ seq, position, kind: 'metric' as const }, JSON.parse(text));
}

function logOf({ seq, position }: Place, fields: string[]): JobLog {
  const [, text = '{}'] = fields;
  return Object.assign({ seq, position, kind: 'log' as const }, JSON.parse(text));
}

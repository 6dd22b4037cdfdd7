import type { JobEvent, JobLog, JobMetric, StreamEntry } from '../../contracts/index.js';
import { jobKey, type StoreContext } from '../core/context.js';
import { type WaitOptions, waitFields } from '../core/wait.js';
import { type MetricBlock, readBlocks, type SeqRange, type StepRange } from './metric-blocks.js';
import { formatPosition, parsePosition } from './stream-position.js';

export type StreamKind = StreamEntry['kind'];

/** `[id, [field, value, …]]`, the form of an entry in Redis' replies. */
type RawEntry = [id: string, fields: string[]];
type EntryPosition = Pick<StreamEntry, 'seq' | 'position'>;

const ENTRY_OF: { readonly [K in StreamKind]: (position: EntryPosition, fields: string[]) => StreamEntry } = {
  event: eventOf,
  metric: metricOf,
  log: logOf,
};
const ALL_KINDS = Object.keys(ENTRY_OF) as StreamKind[];

/**
 * The job's stream: events, metrics and log lines in one sequence. A position in it is the `position` of an
 * entry; null is the beginning. A loss of Redis ends the stream and invalidates its positions: the restored
 * job has another stream. A failover that loses the end of a stream invalidates the positions in that end,
 * also when the stream has grown beyond them since.
 */
export type JobStreams = ReturnType<typeof jobStreams>;

export function jobStreams(context: StoreContext) {
  return {
    /**
     * Returns entries after a position in order, at most `limit`; only `kinds` when given. Empty for an
     * unknown job.
     * @throws ZerofleetError `position_lost` when the job's stream has no such position
     */
    readStream: async (
      jobId: string,
      after: string | null,
      limit: number,
      kinds: readonly StreamKind[] = ALL_KINDS,
    ): Promise<StreamEntry[]> =>
      (await read(context, { job_id: jobId, after: positionOf(after), limit, kinds }))
        .sort((a, b) => a.seq - b.seq)
        .slice(0, limit),

    /**
     * Returns the newest entries before a position, newest first; null is the end of the stream.
     * @throws ZerofleetError as `readStream`
     */
    readNewest: async (
      jobId: string,
      before: string | null,
      limit: number,
      kinds: readonly StreamKind[],
    ): Promise<StreamEntry[]> =>
      (await read(context, { job_id: jobId, newest: true, before: positionOf(before), limit, kinds }))
        .sort((a, b) => b.seq - a.seq)
        .slice(0, limit),

    /**
     * Returns metrics after a position in order, at most `limit`. Skips most of those outside of a range of
     * steps, at the cost of those inside of it. Empty when no metric of the range follows.
     * @throws ZerofleetError as `readStream`
     */
    async readSteps(
      jobId: string,
      after: string | null,
      limit: number,
      { from, to }: StepRange,
    ): Promise<JobMetric[]> {
      const steps = { from, ...(Number.isFinite(to) && { to }) };
      const kinds = ['metric'] as const;
      return (await read(context, { job_id: jobId, after: positionOf(after), limit, kinds, steps })).filter(
        (entry) => entry.kind === 'metric',
      );
    },

    /**
     * Returns all blocks of the job's metrics, oldest first, with the extremes of some names. Metrics may follow
     * the last block meanwhile.
     */
    readBlocks: (
      jobId: string,
      names: readonly string[],
    ): Promise<{ stream: string; blocks: MetricBlock[] }> => readBlocks(context, jobId, names),

    /**
     * Returns metrics by their numbers, in the order of the ranges. Dropped metrics are left out.
     * @param stream of `readBlocks`
     * @throws ZerofleetError `position_lost` when the job has another stream
     */
    async readMetrics(jobId: string, stream: string, ranges: readonly SeqRange[]): Promise<JobMetric[]> {
      if (ranges.length === 0) return [];
      const [entries] = await context.commands.run('read_metrics', { job_id: jobId, stream, ranges });
      return (entries as RawEntry[]).map(([id, fields]) => metricOf(entryPositionOf(stream, id), fields));
    },

    /**
     * Waits until the stream has an entry after a position, or no such position.
     * @returns false when `timeoutMs` passed or `signal` was aborted first
     */
    waitStream(jobId: string, after: string | null, options: WaitOptions): Promise<boolean> {
      const seen = after === null ? null : parsePosition(after);
      // A different last entry, even before the position, means new entries or a lost position.
      const hasMore = ([stream, seq, stamp]: (string | null)[]) =>
        stream != null &&
        (seen === null
          ? seq !== '0'
          : stream !== seen.stream || Number(seq) !== seen.seq || Number(stamp) !== seen.stamp);
      const fields = ['stream', 'seq', 'seq_stamp'];
      const key = jobKey(context, jobId);
      return waitFields(context, { key, fields, channel: `${key}:wake` }, hasMore, options);
    },

    /**
     * Waits until the job's `state_version` differs from `version`, which may have been lost in a failover.
     * Any number of waiters share one subscription.
     * @returns false when `timeoutMs` passed or `signal` was aborted first
     */
    waitVersion(jobId: string, version: number, options: WaitOptions): Promise<boolean> {
      const key = jobKey(context, jobId);
      const watched = { key, fields: ['state_version'], channel: `${key}:control` };
      return waitFields(context, watched, ([now]) => Number(now) !== version, options);
    },
  };
}

interface ReadCall extends Record<string, unknown> {
  job_id: string;
  limit: number;
  kinds: readonly StreamKind[];
}

/**
 * Runs read_stream. Each of its lists holds the first `limit` of its kind, so the first `limit` of all are among them.
 */
async function read({ commands }: StoreContext, call: ReadCall): Promise<StreamEntry[]> {
  const [stream, ...lists] = await commands.run('read_stream', call);
  return call.kinds.flatMap((kind, i) =>
    ((lists as RawEntry[][])[i] ?? []).map(([id, fields]) =>
      ENTRY_OF[kind](entryPositionOf(stream as string, id), fields),
    ),
  );
}

function entryPositionOf(stream: string, id: string): EntryPosition {
  const [seq = 0, stamp = 0] = id.split('-').map(Number);
  return { seq, position: formatPosition({ stream, seq, stamp }) };
}

function positionOf(text: string | null) {
  return text === null ? undefined : parsePosition(text);
}

function eventOf(position: EntryPosition, fields: string[]): JobEvent {
  const [, type = '', , at = '', , data = '{}'] = fields;
  return { ...position, kind: 'event', type, at, data: JSON.parse(data) };
}

function metricOf({ seq, position }: EntryPosition, fields: string[]): JobMetric {
  const [, text = '{}'] = fields;
  // A curve reads 100,000 metrics; a spread takes six times as long as parsing.
  return Object.assign({ seq, position, kind: 'metric' as const }, JSON.parse(text));
}

function logOf({ seq, position }: EntryPosition, fields: string[]): JobLog {
  const [, text = '{}'] = fields;
  return Object.assign({ seq, position, kind: 'log' as const }, JSON.parse(text));
}

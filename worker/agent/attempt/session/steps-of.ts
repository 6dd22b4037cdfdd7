import { savePace } from '../../../shared/save-pace.js';
import type { GenerationContext } from '../context.js';
import type { JobCheckpoints } from '../job-checkpoints.js';
import type { RankInput } from '../start-message.js';
import { CallFeed, type FeedControl } from './call-feed.js';
import type { CallWriter } from './call-writer.js';
import type { JobCalls } from './job-calls.js';
import { DataSteps, type StepSource } from './step-source.js';

export interface StepsInput {
  checkpoints: JobCheckpoints;
  /** Calls of the job; null if it takes none. */
  calls: JobCalls | null;
  /** Writes the calls; null if clients do. */
  writer: CallWriter | null;
}

/** Returns the source of the steps of a generation. */
export function stepsOf(
  ctx: GenerationContext,
  {
    calls,
    writer,
    checkpoints,
    load,
    failures_per_second,
  }: StepsInput & Pick<RankInput, 'load' | 'failures_per_second'>,
  control: FeedControl,
): StepSource {
  if (calls === null) return new DataSteps(control.tell);
  const now = () => performance.now() / 1000;
  const pace = savePace({ checkpoint: ctx.job.spec.checkpoint, failures_per_second, now });
  const first = load?.resume?.manifest.calls?.number ?? 0;
  return new CallFeed(ctx, { calls, writer, checkpoints, pace, ...control }, first);
}

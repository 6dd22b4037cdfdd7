import { ZerofleetError } from '../../../../contracts/index.js';
import type { LoadCallMessage, LoadedMessage, RankError } from '../../../../contracts/rank-protocol.js';
import type { ChecksummedFile } from '../../../../formats/checkpoint/verified-chunks.js';
import { codeOf, isBadCheckpoint, toRankError } from '../../../shared/errors.js';
import { readManifest } from '../../../shared/read-manifest.js';
import { type GenerationContext, retryStorage } from '../context.js';
import type { JobCheckpoints } from '../job-checkpoints.js';
import type { JobCalls } from './job-calls.js';

interface CallLoadsOptions {
  calls: Pick<JobCalls, 'resultOf' | 'refuse' | 'refusalOf'>;
  checkpoints: Pick<JobCheckpoints, 'verifyLoad'>;
}

/** Checkpoint that the ranks load for a call. */
interface OpenLoad {
  number: number;
  source: { directory: string };
  files: readonly ChecksummedFile[];
  /** True if the call has loaded the checkpoint before, so that its result cannot be an error. */
  is_repeated: boolean;
}

/** Checkpoints that the ranks of a generation load for calls, one after the other. */
export class CallLoads {
  private load: OpenLoad | null = null;

  constructor(
    private readonly ctx: Pick<GenerationContext, 'deps' | 'job' | 'lease'>,
    private readonly options: CallLoadsOptions,
  ) {}

  /**
   * Opens a checkpoint and keeps it while the ranks read it. A call with a result ends as before, whatever the store
   * has now.
   * @returns the reason not to load the checkpoint, which is the result of the call; null: load it
   * @throws ZerofleetError when the call has loaded the checkpoint before, and it cannot be loaded any more; errors of
   *   the stores
   */
  async open({ number, checkpoint, directory }: LoadCallMessage): Promise<RankError | null> {
    const { calls } = this.options;
    const before = await calls.resultOf(number);
    if (before !== null && 'error' in before) return before.error;
    const refusal = calls.refusalOf(number);
    if (refusal) return refusal;
    try {
      this.load = { number, is_repeated: before !== null, ...(await this.find(checkpoint, directory)) };
      return null;
    } catch (error) {
      const { code, message } = toRankError(error);
      const isKnown = code === 'checkpoint_not_found' || isBadCheckpoint(code);
      if (!isKnown) throw error;
      if (before === null) return { code, message };
      throw new ZerofleetError(
        'checkpoint_not_found',
        `call ${number} has to load ${checkpoint} again, because the session continues from an earlier state: ${message}`,
      );
    }
  }

  /** Verifies the bytes that the ranks have read. After a rejection their state is damaged. */
  async verify(messages: readonly LoadedMessage[]): Promise<void> {
    if (this.load === null) throw new ZerofleetError('internal_error', 'ranks loaded without a call');
    const ranges = messages.flatMap((message) => message.ranges);
    await this.options.checkpoints.verifyLoad(this.load, ranges);
  }

  /**
   * Refuses the checkpoint that is being loaded, if its damage is the error: the next generation runs the calls before
   * again, and answers this one with the error. Returns false for another error, and for a call that is run again.
   */
  refuse(error: unknown): boolean {
    const { load } = this;
    if (load === null || load.is_repeated || !isBadCheckpoint(codeOf(error) ?? '')) return false;
    const { code, message } = toRankError(error);
    this.options.calls.refuse(load.number, { code, message });
    return true;
  }

  /** All ranks have run the calls up to a number. */
  ended(number: number): void {
    if (this.load !== null && this.load.number <= number) this.load = null;
  }

  private async find(checkpoint: string, directory: string) {
    const { deps, job, lease } = this.ctx;
    const missing = new ZerofleetError(
      'checkpoint_not_found',
      `checkpoint ${checkpoint} does not exist any more`,
    );
    await lease.call(() => deps.store.holdCheckpoint(checkpoint, job.id));
    const reading = retryStorage(this.ctx, () => readManifest(deps.objects, directory));
    const { id, shards } = await reading.catch((error: unknown) => {
      throw codeOf(error) === 'object_not_found' ? missing : error;
    });
    if (id !== checkpoint) throw missing;
    return { source: { directory }, files: shards };
  }
}

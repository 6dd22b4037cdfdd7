import { epochOf } from '../../contracts/execution.js';
import type { Checkpoint } from '../../contracts/index.js';
import type { RangeChecksum, RankError, RetryPolicy } from '../../contracts/rank-protocol.js';
import { checkpointOf } from '../../platform/checkpoint/checkpoint-of.js';
import { checkpointKey, checkpointsPrefix } from '../../platform/checkpoint/layout.js';
import { checkShards } from '../../platform/checkpoint/shard-contents.js';
import { retry } from '../../platform/process/retry.js';
import { buildManifest, putManifest, type WrittenBy } from '../checkpoint/commit.js';
import { listSaves, mayRemove, removeSave, type StoredSave } from '../checkpoint/leftovers.js';
import { outsideLineage } from '../checkpoint/lineage.js';
import { readManifest } from '../checkpoint/read-manifest.js';
import { allCheckpoints, applyRetention } from '../checkpoint/retention.js';
import type { CompleteSave } from '../checkpoint/save-collector.js';
import { verifyLoadedRanges } from '../checkpoint/verify-load.js';
import { codeOf, isRetryable, toRankError } from '../common/errors.js';
import { isLeaseLoss } from '../lease/lease.js';
import { type AttemptContext, emit } from './context.js';
import { type AttemptError, isBadCheckpoint } from './failure.js';
import type { LoadPoint, ResumePoint } from './load-point.js';

/** The checkpoints of one job, as the agent that holds it sees them. */
export class JobCheckpoints {
  /** The newest one that counts. */
  latest: Checkpoint | null = null;

  /** Manifests that can't be read and that the job store does not know. */
  private readonly unreadable = new Set<string>();
  private errors: number;
  private saved_at = performance.now();

  constructor(
    private readonly ctx: AttemptContext,
    error_count: number,
  ) {
    this.errors = error_count;
  }

  get latest_step(): number | null {
    return this.latest?.step ?? null;
  }

  /** Counts an error since the newest checkpoint; returns how many there are. */
  countError(): number {
    this.errors++;
    return this.errors;
  }

  /** From here on there is work that could be lost. */
  workBegins(): void {
    this.saved_at = performance.now();
  }

  /** Seconds of training that no checkpoint holds. */
  unsavedSeconds(): number {
    const seconds = (performance.now() - this.saved_at) / 1000;
    this.workBegins();
    return seconds;
  }

  /**
   * The newest checkpoint that can be used, or null. The object store decides what there is: a manifest that was written by an
   * agent that died before it could tell the job store is told now. Leftovers of saves that never became checkpoints are removed,
   * and so are manifests of agents that had lost the job. No rank may run while this is called.
   */
  async newest(): Promise<ResumePoint | null> {
    const saves = await this.sweep();
    const recorded = await this.ctx.lease.call(() => allCheckpoints(this.ctx));
    const strangers = outsideLineage(saves, recorded);
    await this.remove(strangers);
    const known = new Map(recorded.map((checkpoint) => [checkpoint.prefix, checkpoint]));
    const usable = saves.filter(
      (save) =>
        save.committed &&
        !strangers.includes(save) &&
        !this.unreadable.has(save.prefix) &&
        !known.get(save.prefix)?.damaged,
    );
    for (const { prefix } of usable.reverse()) {
      const resume = await this.open(prefix, known.get(prefix) ?? null);
      if (!resume) continue;
      try {
        await this.record(resume.checkpoint);
      } catch (error) {
        // A person has deleted it, and its objects are about to go.
        if (codeOf(error) !== 'checkpoint_not_found') throw error;
        continue;
      }
      this.latest = resume.checkpoint;
      return resume;
    }
    this.latest = null;
    return null;
  }

  /**
   * Removes what dead ranks left of saves that never became checkpoints; no rank may run. What can't be removed now is removed the
   * next time.
   * @param policy how patiently it is looked for
   * @returns every save that there is, the oldest first
   */
  async sweep(policy = this.ctx.deps.timing.storage): Promise<StoredSave[]> {
    const { deps, job, lease, log } = this.ctx;
    const prefix = checkpointsPrefix(job.id);
    const saves = await retry(() => listSaves(deps.objects, prefix), policy, {
      retryable: isRetryable,
      signal: lease.lost,
    });
    await lease.confirm();
    await this.remove(saves.filter(({ committed }) => !committed));
    await deps.objects
      .abandonUploads(prefix, { confirm: () => lease.confirm() })
      .catch((error: unknown) => log.warn({ err: error }, 'uploads of dead ranks not ended'));
    return saves;
  }

  /**
   * Applies the retention rule at the end of a job, when no save follows that would do it: what a retention that was cut off has left
   * goes as well. Where the store stays broken an event says so, and the checkpoints stay.
   * @param signal ends the tries; then the last error is thrown
   */
  async retain(policy: RetryPolicy, signal = this.ctx.lease.lost): Promise<void> {
    const { log } = this.ctx;
    try {
      await retry(() => applyRetention(this.ctx, null), policy, { retryable: isRetryable, signal });
    } catch (error) {
      if (signal.aborted || isLeaseLoss(error)) throw error;
      const { code, message } = toRankError(error);
      log.warn({ err: error, code }, 'old checkpoints not removed');
      await emit(this.ctx, 'checkpoint.retention_failed', { code, message });
    }
  }

  /** Never uses this checkpoint again, and says so. */
  async reject({ prefix, checkpoint }: ResumePoint, error: AttemptError): Promise<void> {
    await this.giveUp(prefix, checkpoint, error);
  }

  /** Whether an export failed because of its checkpoint. It reads files of models as well. */
  async isDamaged({ manifest, prefix }: ResumePoint, error: unknown): Promise<boolean> {
    const code = codeOf(error) ?? '';
    if (!isBadCheckpoint(code)) return false;
    if (code === 'shard_corrupt' || code === 'manifest_invalid') return true;
    const { deps, lease } = this.ctx;
    for (const { file, bytes } of manifest.shards) {
      const found = await retry(() => deps.objects.head(`${prefix}/${file}`), deps.timing.storage, {
        retryable: isRetryable,
        signal: lease.lost,
      });
      if (found?.bytes !== bytes) return true;
    }
    return false;
  }

  /** Checks what the ranks read. */
  async verifyLoad(
    { source, files }: Pick<LoadPoint, 'source' | 'files'>,
    ranges: readonly RangeChecksum[],
  ): Promise<void> {
    const { deps, lease } = this.ctx;
    const verify = () => verifyLoadedRanges(deps.objects, source.directory, files, ranges);
    await retry(verify, deps.timing.storage, {
      retryable: isRetryable,
      signal: lease.lost,
    });
  }

  /**
   * Makes a save count: the manifest is the commit point, written last and once.
   * @throws `checkpoint_incomplete`; errors of the object store when they last; `stale_epoch`
   */
  async commit(save: CompleteSave, by: Omit<WrittenBy, 'epoch' | 'parent'>): Promise<void> {
    const { deps, job, lease, log } = this.ctx;
    checkShards({ ...by.connected, world_size: by.world_size }, save.shards);
    const manifest = buildManifest(job.id, save, {
      ...by,
      epoch: epochOf(lease.execution),
      parent: this.latest?.id ?? null,
    });
    const prefix = checkpointKey(job.id, save.directory);
    await lease.confirm();
    await putManifest(deps.objects, prefix, manifest, { policy: deps.timing.storage, signal: lease.lost });
    const checkpoint = checkpointOf(manifest, prefix);
    await this.record(checkpoint, save.save_request);
    this.latest = checkpoint;
    const { step, cost, save_request } = save;
    this.ctx.stops.answerSave(save_request);
    await emit(this.ctx, 'checkpoint.saved', {
      checkpoint: checkpoint.id,
      step,
      bytes: checkpoint.bytes,
      ...cost,
      save_request,
    });
    this.errors = 0;
    this.workBegins();
    await applyRetention(this.ctx, save.directory).catch((error: unknown) =>
      log.warn({ err: error }, 'old checkpoints not removed'),
    );
  }

  private async remove(saves: readonly StoredSave[]): Promise<void> {
    const { deps, lease, log } = this.ctx;
    for (const save of saves.filter(({ prefix }) => mayRemove(prefix, lease.execution))) {
      await removeSave(deps.objects, save).catch((error: unknown) =>
        log.warn({ err: error, prefix: save.prefix }, 'leftover not removed'),
      );
    }
  }

  private async record(checkpoint: Checkpoint, save_request = 0): Promise<void> {
    const { deps, lease } = this.ctx;
    await lease.call((id, execution) =>
      deps.store.commitCheckpoint(id, execution, checkpoint, { save_request }),
    );
  }

  private async giveUp(prefix: string, checkpoint: Checkpoint | null, error: RankError): Promise<void> {
    const { deps, lease } = this.ctx;
    if (checkpoint)
      await lease.call((id, execution) => deps.store.rejectCheckpoint(id, execution, checkpoint.id));
    else this.unreadable.add(prefix);
    const { id = null, step = null } = checkpoint ?? {};
    const { code, message } = error;
    await emit(this.ctx, 'checkpoint.fallback', { checkpoint: id, step, prefix, code, message });
  }

  /** Null when it can't be used; the event says why. */
  private async open(prefix: string, known: Checkpoint | null): Promise<ResumePoint | null> {
    const { deps, lease } = this.ctx;
    try {
      const manifest = await retry(() => readManifest(deps.objects, prefix), deps.timing.storage, {
        retryable: isRetryable,
        signal: lease.lost,
      });
      return { manifest, prefix, checkpoint: checkpointOf(manifest, prefix) };
    } catch (error) {
      if (!isBadCheckpoint(codeOf(error) ?? '')) throw error;
      await this.giveUp(prefix, known, toRankError(error));
      return null;
    }
  }
}

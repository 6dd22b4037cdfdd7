import { epochOf } from '../../../contracts/execution.js';
import type { Checkpoint } from '../../../contracts/index.js';
import type {
  LoadedMessage,
  LoadSource,
  RangeChecksum,
  RankError,
  RetryPolicy,
} from '../../../contracts/rank-protocol.js';
import { checkpointOf } from '../../../formats/checkpoint/checkpoint-of.js';
import { checkpointKey, checkpointsPrefix, compareSaves } from '../../../formats/checkpoint/layout.js';
import { checkShards } from '../../../formats/checkpoint/shard-contents.js';
import { codeOf, isBadCheckpoint, retryTransient, toRankError } from '../../shared/errors.js';
import { readManifest } from '../../shared/read-manifest.js';
import { verifyLoadedRanges } from '../../shared/verify-load.js';
import { buildManifest, putManifest, type WrittenBy } from '../checkpoint/commit.js';
import { listSaves, mayRemove, removeSave, type StoredSave, saveIdOf } from '../checkpoint/leftovers.js';
import { outsideLineage } from '../checkpoint/lineage.js';
import { allCheckpoints, applyRetention } from '../checkpoint/retention.js';
import type { CompleteSave } from '../checkpoint/save-collector.js';
import { isLeaseLoss } from '../lease/lease.js';
import { type AttemptContext, emit, retryStorage } from './context.js';
import type { AttemptError } from './failure.js';
import { type BasePoint, verifyBase } from './load/base-point.js';
import type { LoadPoint, NewestPoint, ResumePoint } from './load/load-point.js';

/** Checkpoints of one job, as seen by the agent that holds its lease. */
export class JobCheckpoints {
  /** The newest checkpoint of the lineage. */
  latest: Checkpoint | null = null;

  /** Unreadable manifests without a record in the job store. */
  private readonly unreadable = new Set<string>();
  private errors: number;
  private savedAt = performance.now();

  constructor(
    private readonly ctx: AttemptContext,
    errorCount: number,
  ) {
    this.errors = errorCount;
  }

  get latestStep(): number | null {
    return this.latest?.step ?? null;
  }

  /** Counts an error since the newest checkpoint; returns the count. */
  countError(): number {
    this.errors++;
    return this.errors;
  }

  /** Restarts the clock of lost work: work from here on may be lost. */
  restartLostWorkClock(): void {
    this.savedAt = performance.now();
  }

  /** Returns the seconds of training since the newest checkpoint, and restarts the clock. */
  unsavedSeconds(): number {
    const seconds = (performance.now() - this.savedAt) / 1000;
    this.restartLostWorkClock();
    return seconds;
  }

  /**
   * Returns the newest usable checkpoint, or null. The object store is the source of truth: a manifest whose agent died
   * before it could record the checkpoint is recorded now. Leftovers of saves without a manifest are removed, and so
   * are manifests of agents that had lost the lease. A checkpoint whose best one is missing is not usable, because the
   * job could not export that. Call it only while no rank runs.
   */
  async newest(): Promise<NewestPoint | null> {
    const saves = await this.sweep();
    const recorded = await this.ctx.lease.call(() => allCheckpoints(this.ctx));
    const outside = outsideLineage(saves, recorded);
    await this.remove(outside);
    const known = new Map(recorded.map((checkpoint) => [checkpoint.prefix, checkpoint]));
    const usable = saves.filter(
      (save) =>
        save.committed &&
        !outside.includes(save) &&
        !this.unreadable.has(save.prefix) &&
        !known.get(save.prefix)?.damaged,
    );
    const orderOf = ({ prefix }: StoredSave) => ({ ...saveIdOf(prefix), id: known.get(prefix)?.id });
    usable.sort((a, b) => compareSaves(orderOf(b), orderOf(a)));
    for (const { prefix } of usable) {
      const resume = await this.open(prefix, known.get(prefix) ?? null);
      const best = resume && (await this.openBest(resume, usable, known));
      if (!best) continue;
      try {
        await this.record(resume.checkpoint);
      } catch (error) {
        // A user deleted the checkpoint, and its objects are about to be removed.
        if (codeOf(error) !== 'checkpoint_not_found') throw error;
        continue;
      }
      this.latest = resume.checkpoint;
      return { ...resume, best };
    }
    this.latest = null;
    return null;
  }

  /**
   * Removes leftovers of saves without a manifest; call it only while no rank runs. The next call retries failed
   * removals.
   * @param policy retries of the listing
   * @returns every save, oldest first
   */
  async sweep(policy = this.ctx.deps.timing.storage): Promise<StoredSave[]> {
    const { deps, job, lease, log } = this.ctx;
    const prefix = checkpointsPrefix(job.id);
    const saves = await retryTransient(() => listSaves(deps.objects, prefix), policy, lease.lost);
    await lease.confirm();
    await this.remove(saves.filter(({ committed }) => !committed));
    await deps.objects
      .abandonUploads(prefix, { confirm: () => lease.confirm() })
      .catch((error: unknown) => log.warn({ err: error }, 'uploads of dead ranks not aborted'));
    return saves;
  }

  /** Sweeps at the end of an attempt: no rank is left, and it may be the job's last. A failure is logged only. */
  async sweepAtEnd(): Promise<void> {
    const { deps, log } = this.ctx;
    await this.sweep(deps.timing.save.periodic).catch((error: unknown) =>
      log.warn({ err: error }, 'leftover saves not listed'),
    );
  }

  /**
   * Applies retention at the end of a job, after which no save does it, and removes what an interrupted retention left.
   * If the store keeps failing, an event reports it and the checkpoints stay.
   * @param signal ends the retries; the last error is thrown then
   */
  async retain(policy: RetryPolicy, signal = this.ctx.lease.lost): Promise<void> {
    const { log } = this.ctx;
    try {
      await retryTransient(() => applyRetention(this.ctx, null), policy, signal);
    } catch (error) {
      if (signal.aborted || isLeaseLoss(error)) throw error;
      const { code, message } = toRankError(error);
      log.warn({ err: error, code }, 'old checkpoints not removed');
      await emit(this.ctx, 'checkpoint.retention_failed', { code, message });
    }
  }

  /** Excludes a checkpoint from further use and emits an event. */
  async reject({ prefix, checkpoint }: ResumePoint, error: AttemptError): Promise<void> {
    await this.markDamaged(prefix, checkpoint, error);
  }

  /** Returns whether a damaged checkpoint caused the error of an export. An export reads files of models as well. */
  async isDamaged({ manifest, prefix }: ResumePoint, error: unknown): Promise<boolean> {
    const code = codeOf(error) ?? '';
    if (!isBadCheckpoint(code)) return false;
    if (code === 'shard_corrupt' || code === 'manifest_invalid') return true;
    const { deps } = this.ctx;
    for (const { file, bytes } of manifest.shards) {
      const found = await retryStorage(this.ctx, () => deps.objects.head(`${prefix}/${file}`));
      if (found?.bytes !== bytes) return true;
    }
    return false;
  }

  /** Verifies the checksums of the ranges that the ranks read. */
  async verifyLoad(
    { source, files }: { source: Pick<LoadSource, 'directory'>; files: LoadPoint['files'] },
    ranges: readonly RangeChecksum[],
  ): Promise<void> {
    const { objects } = this.ctx.deps;
    await retryStorage(this.ctx, () => verifyLoadedRanges(objects, source.directory, files, ranges));
  }

  /** Verifies the base of adapters that the ranks read. */
  async verifyBase(base: BasePoint, messages: readonly LoadedMessage[]): Promise<void> {
    const { objects } = this.ctx.deps;
    const loaded = messages.flatMap((message) => message.base ?? []);
    await retryStorage(this.ctx, () => verifyBase(objects, base, loaded));
  }

  /**
   * Commits a save. The manifest is the commit point: it is written last and once.
   * @throws ZerofleetError `checkpoint_incomplete`; lasting errors of the object store; `stale_epoch`
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
    this.restartLostWorkClock();
    await applyRetention(this.ctx, save.directory).catch((error: unknown) =>
      log.warn({ err: error }, 'old checkpoints not removed'),
    );
  }

  /** Answers a save request with the newest checkpoint, which has the present state. */
  async answerSave(request: number): Promise<void> {
    if (this.latest) await this.record(this.latest, request);
    this.ctx.stops.answerSave(request);
  }

  private async remove(saves: readonly StoredSave[]): Promise<void> {
    const { deps, lease, log } = this.ctx;
    for (const save of saves.filter(({ prefix }) => mayRemove(prefix, lease.execution))) {
      await removeSave(deps.objects, save).catch((error: unknown) =>
        log.warn({ err: error, prefix: save.prefix }, 'leftover not removed'),
      );
    }
  }

  private async record(checkpoint: Checkpoint, saveRequest = 0): Promise<void> {
    const { deps, lease } = this.ctx;
    await lease.call((id, execution) =>
      deps.store.commitCheckpoint(id, execution, checkpoint, { save_request: saveRequest }),
    );
  }

  private async markDamaged(prefix: string, checkpoint: Checkpoint | null, error: RankError): Promise<void> {
    const { deps, lease } = this.ctx;
    if (checkpoint)
      await lease.call((id, execution) => deps.store.rejectCheckpoint(id, execution, checkpoint.id));
    else this.unreadable.add(prefix);
    const { id = null, step = null } = checkpoint ?? {};
    const { code, message } = error;
    await emit(this.ctx, 'checkpoint.fallback', { checkpoint: id, step, prefix, code, message });
  }

  /**
   * Opens the best checkpoint at the time of another one. Returns null after an event when it is missing or damaged.
   */
  private async openBest(
    resume: ResumePoint,
    usable: readonly StoredSave[],
    known: ReadonlyMap<string, Checkpoint>,
  ): Promise<ResumePoint | null> {
    const { id, step, best_step, made_from } = resume.checkpoint;
    if (best_step === undefined || (best_step === step && made_from === undefined)) return resume;
    // A checkpoint with a changed tensor was not evaluated.
    const evaluated = ({ prefix }: StoredSave) =>
      saveIdOf(prefix).step === best_step && known.get(prefix)?.made_from === undefined;
    for (const { prefix } of usable.filter(evaluated)) {
      const best = this.unreadable.has(prefix) ? null : await this.open(prefix, known.get(prefix) ?? null);
      if (best) return best;
    }
    const message = `the checkpoint of step ${best_step}, the best one of ${id}, does not exist any more or is damaged`;
    const { prefix } = resume;
    await this.markDamaged(prefix, known.get(prefix) ?? null, { code: 'checkpoint_not_found', message });
    return null;
  }

  /** Reads a checkpoint. Returns null after an event when it is damaged. */
  private async open(prefix: string, known: Checkpoint | null): Promise<ResumePoint | null> {
    try {
      const manifest = await retryStorage(this.ctx, () => readManifest(this.ctx.deps.objects, prefix));
      return { manifest, prefix, checkpoint: checkpointOf(manifest, prefix) };
    } catch (error) {
      if (!isBadCheckpoint(codeOf(error) ?? '')) throw error;
      await this.markDamaged(prefix, known, toRankError(error));
      return null;
    }
  }
}

import type { Checkpoint } from '../../contracts/index.js';
import type { RangeChecksum } from '../../contracts/rank-protocol.js';
import { checkpointOf } from '../../platform/checkpoint/checkpoint-of.js';
import { checkpointKey, checkpointsPrefix } from '../../platform/checkpoint/layout.js';
import type { Manifest } from '../../platform/checkpoint/manifest.js';
import { type AttemptContext, emit } from '../agent/context.js';
import type { AttemptError } from '../agent/failure.js';
import { isBadCheckpoint } from '../agent/failure.js';
import { codeOf, isRetryable, toRankError } from '../errors.js';
import { retry } from '../retry.js';
import { buildManifest, putManifest, type WrittenBy } from './commit.js';
import { checkCoverage } from './coverage.js';
import { listSaves, removeSave } from './leftovers.js';
import type { LoadPoint } from './load-point.js';
import { readManifest } from './read-manifest.js';
import { applyRetention } from './retention.js';
import type { CompleteSave } from './save-collector.js';
import { verifyLoadedRanges } from './verify-load.js';

/** A checkpoint that training can go on from. */
export interface ResumePoint {
  checkpoint: Checkpoint;
  manifest: Manifest;
  /** Key of its directory. */
  prefix: string;
}

/** The checkpoints of one job, as the agent that holds it sees them. */
export class JobCheckpoints {
  /** The newest one that counts. */
  latest: Checkpoint | null = null;

  private readonly rejected = new Set<string>();
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
   * agent that died before it could tell the job store is told now. Leftovers of saves that never became checkpoints are removed, for
   * nobody writes them any more: no rank runs while this is called.
   */
  async newest(): Promise<ResumePoint | null> {
    const { deps, job, lease, log } = this.ctx;
    const policy = deps.timing.storage;
    const saves = await retry(() => listSaves(deps.objects, checkpointsPrefix(job.id)), policy, {
      retryable: isRetryable,
      signal: lease.lost,
    });
    for (const save of saves.filter(({ committed }) => !committed)) {
      await removeSave(deps.objects, save).catch((error: unknown) =>
        log.warn({ err: error }, 'leftover not removed'),
      );
    }
    await deps.objects
      .abandonUploads(checkpointsPrefix(job.id))
      .catch((error: unknown) => log.warn({ err: error }, 'uploads of dead ranks not ended'));
    const committed = saves.filter((save) => save.committed && !this.rejected.has(save.prefix)).reverse();
    for (const { prefix } of committed) {
      const resume = await this.open(prefix);
      if (!resume) continue;
      this.latest = resume.checkpoint;
      await this.record(resume.checkpoint);
      return resume;
    }
    this.latest = null;
    return null;
  }

  /** Never uses this checkpoint again in this attempt, and says so. */
  async reject({ prefix, checkpoint }: ResumePoint, error: AttemptError): Promise<void> {
    this.rejected.add(prefix);
    const { code, message } = error;
    await emit(this.ctx, 'checkpoint.fallback', {
      checkpoint: checkpoint.id,
      step: checkpoint.step,
      code,
      message,
    });
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
  async commit(
    save: CompleteSave,
    by: Pick<WrittenBy, 'connected' | 'world_size' | 'data_digest'>,
  ): Promise<void> {
    const { deps, job, lease, log } = this.ctx;
    checkCoverage(by.connected, save.shards);
    const manifest = buildManifest(job, save, { ...by, epoch: lease.epoch, parent: this.latest?.id ?? null });
    const prefix = checkpointKey(job.id, save.directory);
    lease.lost.throwIfAborted();
    await putManifest(deps.objects, prefix, manifest, { policy: deps.timing.storage, signal: lease.lost });
    const checkpoint = checkpointOf(manifest, prefix);
    await this.record(checkpoint);
    this.latest = checkpoint;
    this.errors = 0;
    this.workBegins();
    await applyRetention(this.ctx).catch((error: unknown) =>
      log.warn({ err: error }, 'old checkpoints not removed'),
    );
  }

  private async record(checkpoint: Checkpoint): Promise<void> {
    const { deps, lease } = this.ctx;
    await lease.call((id, epoch) => deps.store.commitCheckpoint(id, epoch, checkpoint));
  }

  /** Null when it can't be used; the event says why. */
  private async open(prefix: string): Promise<ResumePoint | null> {
    const { deps, lease } = this.ctx;
    try {
      const manifest = await retry(() => readManifest(deps.objects, prefix), deps.timing.storage, {
        retryable: isRetryable,
        signal: lease.lost,
      });
      return { manifest, prefix, checkpoint: checkpointOf(manifest, prefix) };
    } catch (error) {
      if (!isBadCheckpoint(codeOf(error) ?? '')) throw error;
      this.rejected.add(prefix);
      const { data } = await lease.call((id) => deps.store.listCheckpoints(id, { limit: 100 }));
      const known = data.find((checkpoint) => checkpoint.prefix === prefix);
      const { code, message } = toRankError(error);
      await emit(this.ctx, 'checkpoint.fallback', {
        checkpoint: known?.id ?? null,
        step: known?.step ?? null,
        prefix,
        code,
        message,
      });
      return null;
    }
  }
}

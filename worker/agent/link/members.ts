import type { Logger } from '../../../platform/logging/logging.js';
import { waitOrAbort } from '../../../platform/process/retry.js';
import type { SealedWorld, Unsubscribe, WorldRendezvous } from '../../../state/index.js';
import type { MemberWorld } from './member-world.js';

interface MembersOptions {
  store: Pick<WorldRendezvous, 'findWorlds' | 'watchWorlds'>;
  worker_id: string;
  /** Interval of reads of the job store, independent of messages. */
  interval_ms: number;
  log: Logger;
  /** Joins a world. */
  join(world: SealedWorld): MemberWorld;
}

/**
 * Worlds that this worker is a member of: it joins those that it finds in the job store, and ends those that are no
 * longer valid. So a lost message is caught up, and a stopped or partitioned leader leaves no ranks behind.
 */
export class Members {
  /** Joined worlds by world id. */
  private readonly joined = new Map<string, { world: SealedWorld; member: MemberWorld }>();
  /** Ended worlds that the job store may still list: a world is joined once. */
  private ended = new Set<string>();
  private readonly closed = new AbortController();
  private wake = new AbortController();
  private readonly loop: Promise<void>;

  constructor(private readonly options: MembersOptions) {
    this.loop = this.lookForever();
  }

  /** Joins no new world, and asks all leaders to continue without this worker. Resolves when no world is left. */
  async leave(): Promise<void> {
    this.closed.abort();
    this.wake.abort();
    const left = [...this.joined.values()].map(({ member }) => {
      member.leave();
      return member.ended;
    });
    await Promise.all([this.loop, ...left]);
  }

  /** Kills the ranks of all worlds and waits until they have ended. Idempotent. */
  async close(reason: string): Promise<void> {
    this.closed.abort();
    this.wake.abort();
    await this.loop;
    await Promise.all([...this.joined.values()].map(({ member }) => member.end(reason)));
  }

  private async lookForever(): Promise<void> {
    const { store, worker_id, interval_ms, log } = this.options;
    let unwatch: Unsubscribe | null = null;
    const onChange = () => this.wake.abort();
    while (!this.closed.signal.aborted) {
      this.wake = new AbortController();
      const { signal } = this.wake;
      try {
        // The interval finds every world, even without messages.
        unwatch ??= await store.watchWorlds(worker_id, onChange);
        await this.look(await store.findWorlds(worker_id));
      } catch (error) {
        log.warn({ err: error }, 'worlds not looked for');
      }
      await waitOrAbort(interval_ms, signal);
    }
    await unwatch?.().catch(() => undefined);
  }

  private async look(found: SealedWorld[]): Promise<void> {
    const ids = new Set(found.map(({ world_id }) => world_id));
    this.ended = new Set([...this.ended].filter((id) => ids.has(id)));
    const gone = [...this.joined.values()].filter(({ world }) => !ids.has(world.world_id));
    // A generation ends here before the job's next one begins.
    await Promise.all(gone.map(({ member }) => member.end('the world does not count any more')));
    for (const world of found) {
      if (this.closed.signal.aborted) return;
      if (!this.joined.has(world.world_id) && !this.ended.has(world.world_id)) this.join(world);
    }
  }

  private join(world: SealedWorld): void {
    const member = this.options.join(world);
    this.joined.set(world.world_id, { world, member });
    void member.ended.then(() => {
      this.joined.delete(world.world_id);
      this.ended.add(world.world_id);
    });
  }
}

import type { MachineType, PoolPolicy } from '../../platform/config/autoscale-pools.js';
import type { Logger } from '../../platform/logging/logging.js';
import { LaunchBackoff } from '../capacity/launch-backoff.js';
import { keyOf, typeOf } from '../capacity/machine-types.js';
import type { Capacity, CapacityView, LaunchProblem } from '../capacity/port.js';
import type { EndCause } from './causes.js';
import { KubernetesError } from './errors.js';
import { problemOfEnd, problemOfPending, problemOfRefusal } from './launch-problems.js';
import type { Machine } from './pod.js';
import { podOf } from './pod-manifest.js';
import { podStatuses } from './pod-status.js';
import { PodWatch } from './pod-watch.js';
import type { PodsApi } from './pods-api.js';

export interface KubernetesCapacityOptions {
  api: Pick<PodsApi, 'list' | 'watch' | 'create' | 'remove' | 'close'>;
  log: Logger;
  /** Counts pods that ended without a request. */
  onEnded?: (pool: string, type: string, cause: EndCause) => void;
  /** Unix time in ms. */
  clock?: () => number;
}

/** Limits of the creations or deletions of one call, which has to end before another autoscaler may lead. */
const MAX_REQUESTS = 50;
const MAX_REQUESTS_MS = 8_000;
/** A pod that ends earlier counts as a failed launch. */
const LAUNCH_MS = 60_000;
/** Time for which a pod that failed at its start is kept, for its log. */
const KEEP_FAILED_MS = 600_000;

/**
 * Machines as pods: one pod, one agent each. The cluster itself is the record of what was requested: a pod's
 * annotations have its pool, type and number, so another autoscaler finds all of them. Names follow from these, and no
 * two pods of a namespace have the same name, so two autoscalers that request the same machine create one pod.
 *
 * A pod that waits for a node or its image is a request, a running one a machine. The cluster ends a pod for one of
 * higher priority, to drain a node, or with its node. Its agent saves first, and the controller requests as many as are
 * still needed.
 */
export class KubernetesCapacity implements Capacity {
  private readonly pods: PodWatch;
  private readonly backoff: LaunchBackoff;
  private readonly clock: () => number;
  /** Pods that failed at their start, with the time at which they are deleted. */
  private readonly kept = new Map<string, number>();
  /** Longest saves of pools, when machines were last requested. */
  private readonly saveSeconds = new Map<string, number | null>();

  constructor(private readonly options: KubernetesCapacityOptions) {
    const { api, log, clock = Date.now } = options;
    this.clock = clock;
    this.backoff = new LaunchBackoff(clock);
    this.pods = new PodWatch({ api, log, onEnded: this.ended.bind(this) });
  }

  async refresh(): Promise<void> {
    await this.pods.refresh();
    await this.removeEnded();
  }

  async view(policy: PoolPolicy): Promise<CapacityView> {
    const pods = this.pods.list().filter(({ pool }) => pool === policy.pool);
    const view: CapacityView = { machines: [], wanted: {}, problems: [], pods: podStatuses(pods) };
    for (const type of policy.types) {
      const { name } = type;
      for (const { id, phase, started_at } of this.podsOf(policy, name)) {
        if (phase === 'running' || (phase === 'leaving' && started_at !== null))
          view.machines.push({ id, type: name, terminating: phase === 'leaving' });
        if (phase === 'running' && started_at !== null && this.clock() - started_at >= LAUNCH_MS)
          this.backoff.succeeded(keyOf(policy.pool, name), started_at);
      }
      view.wanted[name] = await this.launchAgain(policy, type);
      const problem = this.problemOf(policy, name, view.wanted[name]);
      if (problem) view.problems.push(problem);
    }
    return view;
  }

  async want(
    policy: PoolPolicy,
    name: string,
    machines: number,
    saveSeconds: number | null = null,
  ): Promise<void> {
    this.saveSeconds.set(policy.pool, saveSeconds);
    const type = typeOf(policy.types, name);
    const live = this.liveOf(policy, name);
    this.backoff.want(keyOf(policy.pool, name), machines);
    if (live.length > machines) await this.withdraw(live, live.length - machines);
    else await this.create(policy, type, machines);
  }

  async retire({ pool }: PoolPolicy, machine: string): Promise<void> {
    const found = this.pods.list().find(({ id }) => id === machine);
    if (!found || found.phase === 'ended') return;
    await this.pods.remove(found);
    const key = keyOf(pool, found.type);
    if (isLive(found)) this.backoff.want(key, Math.max(0, this.backoff.owed(key) - 1));
  }

  /** Does nothing: the grace period of a pod is fixed when its deletion begins. */
  async hold(): Promise<void> {}

  /** Ends no pod: they go on, and the next autoscaler finds them. */
  async close(): Promise<void> {
    this.pods.close();
    this.options.api.close();
  }

  private podsOf({ pool }: PoolPolicy, type: string): Machine[] {
    return this.pods.list().filter((each) => each.pool === pool && each.type === type);
  }

  private liveOf(policy: PoolPolicy, type: string): Machine[] {
    return this.podsOf(policy, type).filter(isLive);
  }

  /** Returns why requested pods of a type do not start; null if they only take their time. */
  private problemOf(policy: PoolPolicy, type: string, wanted: number): LaunchProblem | null {
    const live = this.liveOf(policy, type);
    if (live.filter(({ phase }) => phase === 'running').length >= wanted) return null;
    const pending = live.flatMap((pod) => (pod.phase === 'pending' ? (problemOfPending(pod) ?? []) : []));
    const problem = this.backoff.problem(keyOf(policy.pool, type)) ?? pending[0];
    return problem ? { type, ...problem } : null;
  }

  /** Withdraws requests, those without a node and the newest first. Machines stay. */
  private async withdraw(live: readonly Machine[], count: number): Promise<void> {
    const hasNode = ({ pod }: Machine) => Number(pod.spec.nodeName !== undefined);
    const pending = live
      .filter(({ phase }) => phase === 'pending')
      .sort((a, b) => hasNode(a) - hasNode(b) || b.number - a.number);
    for (const pod of pending.slice(0, count)) await this.pods.remove(pod, 'unchanged');
  }

  /** Tries the launches of a failing type again. Returns how many machines are requested. */
  private async launchAgain(policy: PoolPolicy, type: MachineType): Promise<number> {
    const owed = this.backoff.owed(keyOf(policy.pool, type.name));
    if (owed > this.liveOf(policy, type.name).length) {
      await this.create(policy, type, owed).catch((error: unknown) => {
        this.options.log.warn({ err: error, pool: policy.pool, type: type.name }, 'the cluster refuses pods');
      });
    }
    return Math.max(owed, this.liveOf(policy, type.name).length);
  }

  /** Creates what is missing. */
  private async create(policy: PoolPolicy, type: MachineType, machines: number): Promise<void> {
    const key = keyOf(policy.pool, type.name);
    if (this.backoff.isPaused(key)) return;
    const until = this.clock() + MAX_REQUESTS_MS;
    for (let created = 0; created < MAX_REQUESTS && this.clock() < until; created += 1) {
      const numbers = new Set(this.podsOf(policy, type.name).map(({ number }) => number));
      if (this.liveOf(policy, type.name).length >= machines) return;
      let number = 0;
      while (numbers.has(number)) number += 1;
      await this.createOne(policy, type, number).catch((error: unknown) => {
        // Without an answer the pod may have been created.
        if (
          error instanceof KubernetesError &&
          error.status > 0 &&
          error.status < 500 &&
          error.status !== 429
        )
          this.backoff.failed(key, problemOfRefusal(error));
        throw error;
      });
    }
  }

  private async createOne(policy: PoolPolicy, type: MachineType, number: number): Promise<void> {
    await this.pods.create(podOf(policy, type, number, this.saveSeconds.get(policy.pool) ?? null));
    this.options.log.info({ pool: policy.pool, type: type.name, number }, 'pod requested');
  }

  private ended(pod: Machine, cause: EndCause): void {
    const { pool, type, name, id, started_at } = pod;
    const { reason } = pod.pod.status;
    this.options.log.warn({ machine: id, pod: name, pool, type, cause, reason }, 'a pod ended');
    this.options.onEnded?.(pool, type, cause);
    const endedAt = endOf(pod, this.clock());
    const isShort = started_at === null || endedAt - started_at < LAUNCH_MS;
    // Such a type would be requested again and again.
    if (!isShort || (cause !== 'failed' && cause !== 'completed')) return;
    this.backoff.failed(keyOf(pool, type), problemOfEnd(pod));
    this.kept.set(pod.uid, endedAt + KEEP_FAILED_MS);
  }

  /** Deletes pods that have ended, to free their names. One that failed at its start stays for a while. */
  private async removeEnded(): Promise<void> {
    const ended = this.pods.list().filter(({ phase }) => phase === 'ended');
    const uids = new Set(ended.map(({ uid }) => uid));
    for (const uid of this.kept.keys()) if (!uids.has(uid)) this.kept.delete(uid);
    const stays = ({ uid, pool, type }: Machine) =>
      (this.kept.get(uid) ?? 0) > this.clock() &&
      // The first of each type is enough.
      ended.find((each) => each.pool === pool && each.type === type && this.kept.has(each.uid))?.uid === uid;
    const until = this.clock() + MAX_REQUESTS_MS;
    for (const pod of ended.filter((each) => !stays(each)).slice(0, MAX_REQUESTS)) {
      if (this.clock() >= until) return;
      await this.pods.remove(pod).catch((error: unknown) => {
        this.options.log.warn({ err: error, pod: pod.name }, 'could not delete a pod that has ended');
      });
    }
  }
}

/** Returns whether a pod is a machine that stays, or will be one. */
const isLive = ({ phase }: Machine): boolean => phase === 'pending' || phase === 'running';

function endOf({ pod }: Machine, now: number): number {
  const time = pod.status.containerStatuses?.[0]?.state?.terminated?.finishedAt;
  return time ? Date.parse(time) : now;
}

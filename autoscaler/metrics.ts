import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Action, PoolReport } from './controller/types.js';
import type { EndCause as PodEndCause } from './kubernetes/causes.js';
import type { EndCause as AllocationEndCause } from './slurm/causes.js';

const PREFIX = 'zerofleet_autoscaler_';
const RECONCILE_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Prometheus metrics of one autoscaler; names and help texts are the documentation. */
export class AutoscalerMetrics {
  private readonly registry = new Registry();
  private readonly leader = this.gauge(
    'leader',
    '1 while this autoscaler is the leader, 0 while it is a follower.',
  );
  private readonly pools = {
    desired_ranks: this.gauge(
      'desired_ranks',
      'Ranks that jobs should have within the limits of machines, quotas and budget.',
      ['pool'],
    ),
    running_ranks: this.gauge('running_ranks', 'Ranks that jobs hold.', ['pool']),
    provisioned_ranks: this.gauge('provisioned_ranks', 'Ranks that machines have or will have.', ['pool']),
    idle_machines: this.gauge('idle_machines', 'Idle machines.', ['pool']),
    missing_agent_timeouts: this.gauge(
      'missing_agent_timeouts',
      'How often the machines without an agent have exceeded the grace period, summed over them.',
      ['pool'],
    ),
    strikes: this.gauge(
      'strikes',
      'Machines replaced in a row because their agents never registered, over all types.',
      ['pool'],
    ),
    unidentified_agents: this.gauge(
      'unidentified_agents',
      'Agents that do not report which machine they run on.',
      ['pool'],
    ),
    daily_cost: this.gauge('daily_cost', 'Cost of machines since midnight, UTC.', ['pool']),
  };
  private readonly budgetExhausted = this.gauge(
    'budget_exhausted',
    '1 while the budget of the day is exhausted, else 0.',
    ['pool'],
  );
  private readonly machines = this.gauge('machines', 'Machines, by type and state.', [
    'pool',
    'type',
    'state',
  ]);
  private readonly unschedulable = this.gauge(
    'unschedulable_jobs',
    'Waiting jobs that get no machines, by reason.',
    ['pool', 'reason'],
  );
  private readonly launchProblems = this.gauge(
    'launch_problems',
    'Machine types whose requested machines cannot be launched now, by reason.',
    ['pool', 'type', 'code'],
  );
  private readonly pods = this.gauge(
    'pods',
    '1 for each pod, by its node, phase and reason; at most 100 of a pool, those with a reason first.',
    ['pool', 'type', 'pod', 'node', 'phase', 'reason'],
  );
  private readonly actions = new Counter({
    name: `${PREFIX}actions_total`,
    help: 'Actions: changed sizes ("set_size"), machines whose jobs were asked to move ("vacate"), and terminated machines ("retire"), by reason. Reason "busy": not done, because the machine was in use or its jobs fit on no others.',
    labelNames: ['pool', 'kind', 'reason'],
    registers: [this.registry],
  });
  private readonly machinesEnded = new Counter({
    name: `${PREFIX}machines_ended_total`,
    help: 'Slurm allocations and pods that ended without a request of the autoscaler, by cause.',
    labelNames: ['pool', 'type', 'cause'],
    registers: [this.registry],
  });
  private readonly clusterRequests = new Counter({
    name: `${PREFIX}cluster_requests_total`,
    help: 'Requests to the API server of Kubernetes, by verb.',
    labelNames: ['verb'],
    registers: [this.registry],
  });
  private readonly errors = new Counter({
    name: `${PREFIX}errors_total`,
    help: 'Failed reconciliations and actions, by the service that did not answer.',
    labelNames: ['service'],
    registers: [this.registry],
  });
  private readonly reconcileSeconds = new Histogram({
    name: `${PREFIX}reconcile_duration_seconds`,
    help: 'Duration of a reconciliation of all pools with its actions.',
    buckets: RECONCILE_BUCKETS,
    registers: [this.registry],
  });

  /** Returns the content type and text of a scrape. */
  async scrape(): Promise<{ type: string; text: string }> {
    return { type: this.registry.contentType, text: await this.registry.metrics() };
  }

  leading(leads: boolean): void {
    this.leader.set(leads ? 1 : 0);
  }

  reconciled(seconds: number): void {
    this.reconcileSeconds.observe(seconds);
  }

  failed(service: 'job_store' | 'capacity' | 'cloudwatch'): void {
    this.errors.inc({ service });
  }

  machineEnded(pool: string, type: string, cause: AllocationEndCause | PodEndCause): void {
    this.machinesEnded.inc({ pool, type, cause });
  }

  requested(verb: string): void {
    this.clusterRequests.inc({ verb });
  }

  decided(pool: string, report: PoolReport): void {
    for (const [name, gauge] of Object.entries(this.pools))
      gauge.set({ pool }, report[name as keyof typeof this.pools]);
    this.budgetExhausted.set({ pool }, report.budget_exhausted ? 1 : 0);
    for (const [type, states] of Object.entries(report.machines)) {
      for (const [state, count] of Object.entries(states)) this.machines.set({ pool, type, state }, count);
    }
    for (const [reason, count] of Object.entries(report.unschedulable))
      this.unschedulable.set({ pool, reason }, count);
  }

  /** Replaces the problems and pods of all pools. */
  showing(reports: ReadonlyMap<string, PoolReport>): void {
    this.launchProblems.reset();
    this.pods.reset();
    for (const [pool, { problems, pods }] of reports) {
      for (const { name, type, node, phase, reason } of pods)
        this.pods.set({ pool, type, pod: name, node: node ?? '', phase, reason: reason ?? '' }, 1);
      for (const { type, code } of problems) this.launchProblems.set({ pool, type, code }, 1);
    }
  }

  acted(pool: string, action: Action, outcome?: 'busy'): void {
    const reason = outcome ?? (action.kind === 'retire' ? action.reason : '');
    this.actions.inc({ pool, kind: action.kind, reason });
  }

  private gauge(name: string, help: string, labelNames: string[] = []): Gauge {
    return new Gauge({ name: `${PREFIX}${name}`, help, labelNames, registers: [this.registry] });
  }
}

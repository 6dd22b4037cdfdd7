import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Action, PoolReport } from './controller/types.js';

const PREFIX = 'zerofleet_autoscaler_';
const RECONCILE_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Prometheus metrics of one autoscaler; names and help texts are the documentation. */
export class AutoscalerMetrics {
  private readonly registry = new Registry();
  private readonly leads = this.gauge(
    'leads',
    'Whether this autoscaler is the leader (1) or a follower (0).',
  );
  private readonly pools = {
    wanted_ranks: this.gauge(
      'wanted_ranks',
      'Ranks that jobs should have within the limits of machines, quotas and budget.',
      ['pool'],
    ),
    running_ranks: this.gauge('running_ranks', 'Ranks that jobs hold.', ['pool']),
    ranks: this.gauge('ranks', 'Ranks that machines have or will have.', ['pool']),
    idle_machines: this.gauge('idle_machines', 'Idle machines.', ['pool']),
    strikes: this.gauge('strikes', 'Strikes of machines whose agent is missing.', ['pool']),
    anonymous_agents: this.gauge('anonymous_agents', 'Agents that do not report which machine they run on.', [
      'pool',
    ]),
    spent: this.gauge('spent', 'Cost of machines since midnight, UTC.', ['pool']),
  };
  private readonly budgetExhausted = this.gauge(
    'budget_exhausted',
    'Whether the budget of the day is exhausted.',
    ['pool'],
  );
  private readonly machines = this.gauge('machines', 'Machines, by type and state.', [
    'pool',
    'type',
    'state',
  ]);
  private readonly refused = this.gauge(
    'refused_jobs',
    'Waiting jobs for which no machines are requested, by reason.',
    ['pool', 'reason'],
  );
  private readonly actions = new Counter({
    name: `${PREFIX}actions_total`,
    help: 'Actions: sizes set ("want") and machines ended, by reason; "busy": the machine was in use and not ended.',
    labelNames: ['pool', 'kind', 'reason'],
    registers: [this.registry],
  });
  private readonly errors = new Counter({
    name: `${PREFIX}errors_total`,
    help: 'Failed reconciliations and actions, by what did not answer.',
    labelNames: ['what'],
    registers: [this.registry],
  });
  private readonly reconcileSeconds = new Histogram({
    name: `${PREFIX}look_seconds`,
    help: 'Duration of a reconciliation of all pools with its actions.',
    buckets: RECONCILE_BUCKETS,
    registers: [this.registry],
  });

  /** Returns the content type and text of a scrape. */
  async scrape(): Promise<{ type: string; text: string }> {
    return { type: this.registry.contentType, text: await this.registry.metrics() };
  }

  leading(leads: boolean): void {
    this.leads.set(leads ? 1 : 0);
  }

  reconciled(seconds: number): void {
    this.reconcileSeconds.observe(seconds);
  }

  failed(what: 'job_store' | 'capacity' | 'cloudwatch'): void {
    this.errors.inc({ what });
  }

  decided(pool: string, report: PoolReport): void {
    for (const [name, gauge] of Object.entries(this.pools))
      gauge.set({ pool }, report[name as keyof typeof this.pools]);
    this.budgetExhausted.set({ pool }, report.budget_exhausted ? 1 : 0);
    for (const [type, states] of Object.entries(report.machines)) {
      for (const [state, count] of Object.entries(states)) this.machines.set({ pool, type, state }, count);
    }
    for (const [reason, count] of Object.entries(report.refused)) this.refused.set({ pool, reason }, count);
  }

  acted(pool: string, action: Action, outcome?: 'busy'): void {
    const reason = outcome ?? (action.kind === 'retire' ? action.reason : '');
    this.actions.inc({ pool, kind: action.kind, reason });
  }

  private gauge(name: string, help: string, labelNames: string[] = []): Gauge {
    return new Gauge({ name: `${PREFIX}${name}`, help, labelNames, registers: [this.registry] });
  }
}

import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Action, PoolReport } from './controller/types.js';

const PREFIX = 'zerofleet_autoscaler_';
const LOOK_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** What one autoscaler counts, in Prometheus' terms; names and help are the documentation. */
export class AutoscalerMetrics {
  private readonly registry = new Registry();
  private readonly leads = this.gauge('leads', 'Whether this one decides (1) or stands by (0).');
  private readonly pools = {
    wanted_ranks: this.gauge('wanted_ranks', 'Ranks that jobs should have, by machines, quotas and budget.', [
      'pool',
    ]),
    running_ranks: this.gauge('running_ranks', 'Ranks that jobs hold.', ['pool']),
    ranks: this.gauge('ranks', 'Ranks that machines have or will have.', ['pool']),
    idle_machines: this.gauge('idle_machines', 'Machines that do nothing.', ['pool']),
    strikes: this.gauge('strikes', 'Strikes of machines whose agent is missing.', ['pool']),
    anonymous_agents: this.gauge('anonymous_agents', 'Agents that do not say which machine they run on.', [
      'pool',
    ]),
    spent: this.gauge('spent', 'What machines have cost since midnight, UTC.', ['pool']),
  };
  private readonly budgetExhausted = this.gauge(
    'budget_exhausted',
    'Whether the budget of the day is used up.',
    ['pool'],
  );
  private readonly machines = this.gauge('machines', 'Machines, by type and state.', [
    'pool',
    'type',
    'state',
  ]);
  private readonly refused = this.gauge('refused_jobs', 'Jobs that get no machines now, by reason.', [
    'pool',
    'reason',
  ]);
  private readonly actions = new Counter({
    name: `${PREFIX}actions_total`,
    help: 'What was done: sizes that were set ("want") and machines that were ended, by reason; "busy": it was not ended after all.',
    labelNames: ['pool', 'kind', 'reason'],
    registers: [this.registry],
  });
  private readonly errors = new Counter({
    name: `${PREFIX}errors_total`,
    help: 'Looks that failed, by what did not answer.',
    labelNames: ['what'],
    registers: [this.registry],
  });
  private readonly lookSeconds = new Histogram({
    name: `${PREFIX}look_seconds`,
    help: 'Duration of a look at all pools with what was done.',
    buckets: LOOK_BUCKETS,
    registers: [this.registry],
  });

  /** Content type and text of everything, as a scrape answers it. */
  async scrape(): Promise<{ type: string; text: string }> {
    return { type: this.registry.contentType, text: await this.registry.metrics() };
  }

  leading(leads: boolean): void {
    this.leads.set(leads ? 1 : 0);
  }

  looked(seconds: number): void {
    this.lookSeconds.observe(seconds);
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

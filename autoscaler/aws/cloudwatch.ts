import { type CloudWatchClient, type MetricDatum, PutMetricDataCommand } from '@aws-sdk/client-cloudwatch';
import type { Logger } from '../../platform/logging/logging.js';
import type { PoolReport } from '../controller/types.js';
import type { AutoscalerMetrics } from '../metrics.js';

interface CloudWatchOptions {
  client: CloudWatchClient;
  namespace: string;
  metrics: Pick<AutoscalerMetrics, 'failed'>;
  log: Logger;
  clock?: () => number;
}

/** Resolution of CloudWatch's standard metrics. */
const INTERVAL_MS = 60_000;
/** Most data points in one PutMetricData call. */
const MAX_DATA = 1000;

/**
 * Publishes the metrics of all pools to CloudWatch once a minute, with the dimension `Pool`: in addition to
 * Prometheus, which scrapes them itself.
 */
export class CloudWatchPublisher {
  private dueAt = 0;

  constructor(private readonly options: CloudWatchOptions) {}

  /** Does not reject: after a failure the next reports are published. */
  async publish(reports: ReadonlyMap<string, PoolReport>): Promise<void> {
    const { client, namespace, metrics, log, clock = Date.now } = this.options;
    const now = clock();
    if (now < this.dueAt || reports.size === 0) return;
    this.dueAt = now + INTERVAL_MS;
    const data = [...reports].flatMap(([pool, report]) => dataOf(pool, report, new Date(now)));
    try {
      for (let at = 0; at < data.length; at += MAX_DATA) {
        const MetricData = data.slice(at, at + MAX_DATA);
        await client.send(new PutMetricDataCommand({ Namespace: namespace, MetricData }));
      }
    } catch (error) {
      metrics.failed('cloudwatch');
      log.warn({ err: error }, 'could not publish metrics; the next attempt is due in a minute');
    }
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.options.client.destroy();
  }
}

/** Returns the values of a pool by the names of their metrics. */
export function metricsOf(report: PoolReport) {
  const sum = (state: 'running' | 'starting' | 'requested' | 'terminating') =>
    Object.values(report.machines).reduce((total, states) => total + states[state], 0);
  const { unschedulable } = report;
  return {
    DesiredRanks: report.desired_ranks,
    RunningRanks: report.running_ranks,
    ProvisionedRanks: report.provisioned_ranks,
    MachinesRunning: sum('running'),
    MachinesStarting: sum('starting') + sum('requested'),
    MachinesTerminating: sum('terminating'),
    MachinesUp: sum('running') + sum('starting') + sum('terminating'),
    IdleMachines: report.idle_machines,
    // Jobs that time alone does not help; quotas, limits and budgets are meant to let jobs wait.
    JobsRefused: unschedulable.too_large + unschedulable.gang + unschedulable.launch_failed,
    MissingAgentTimeouts: report.missing_agent_timeouts,
    Strikes: report.strikes,
    DailyCost: report.daily_cost,
    BudgetExhausted: report.budget_exhausted ? 1 : 0,
  };
}

function dataOf(pool: string, report: PoolReport, Timestamp: Date): MetricDatum[] {
  return Object.entries(metricsOf(report)).map(([MetricName, Value]) => ({
    MetricName,
    Value,
    Timestamp,
    Dimensions: [{ Name: 'Pool', Value: pool }],
    Unit: 'None',
  }));
}

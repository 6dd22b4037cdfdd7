import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { ShardMessage, SteppedMessage } from '../../../contracts/rank-protocol.js';
import type { GpuPool } from '../gpus/gpu-pool.js';

const PREFIX = 'zerofleet_worker_';
/** From a tiny model on a CPU to minutes. */
const STEP_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
const STALL_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30];

/**
 * Prometheus metrics of one agent; their names and help texts are the documentation. Counting is cheap, so it is always
 * enabled.
 */
export class AgentMetrics {
  private readonly registry = new Registry();
  private readonly slots = this.gauge('slots', 'Maximum number of concurrent ranks of this agent.');
  private readonly unhealthyGpus = this.gauge(
    'unhealthy_gpus',
    'Unhealthy GPUs of this agent, which get no ranks.',
  );
  private readonly ranks = this.gauge('running_ranks', 'Running ranks.');
  private readonly stepSeconds = this.histogram(
    'step_duration_seconds',
    'Duration of training steps.',
    STEP_BUCKETS,
  );
  private readonly tokens = this.counter('tokens_total', 'Tokens trained on, by jobs that this agent leads.');
  private readonly stallSeconds = this.histogram(
    'checkpoint_stall_seconds',
    'Time for which a save stalled the training of a rank.',
    STALL_BUCKETS,
  );
  private readonly savedBytes = this.counter('checkpoint_bytes_total', 'Bytes of stored shards.');
  private readonly saveSeconds = this.counter(
    'checkpoint_write_seconds_total',
    'Time spent storing shards, summed over ranks; bytes divided by it is the throughput of one rank.',
  );
  private readonly failedShards = this.counter(
    'checkpoint_failures_total',
    'Shards that could not be stored.',
  );
  private readonly failedCredentials = this.counter(
    'credential_failures_total',
    'Failed requests for credentials of a job.',
  );
  private readonly errors = this.counter('errors_total', 'Errors of attempts, by code.', ['code']);
  private readonly preemptions = this.counter(
    'preemptions_total',
    'Attempts returned to the queue because their machine or slots were needed, by reason.',
    ['reason'],
  );

  /** Creates the metrics. @param worker pool and slots of the agent; the pool is a label of every series */
  constructor({ pool, slots }: { pool: string; slots: number }) {
    this.registry.setDefaultLabels({ pool });
    this.slots.set(slots);
  }

  /** Returns content type and text of a scrape. */
  async scrape(): Promise<{ type: string; text: string }> {
    return { type: this.registry.contentType, text: await this.registry.metrics() };
  }

  /** Updates slots and unhealthy GPUs. */
  gpus({ slots, gpus }: Pick<GpuPool, 'slots' | 'gpus'>): void {
    this.slots.set(slots);
    this.unhealthyGpus.set(gpus.filter(({ problem }) => problem !== null).length);
  }

  /** Counts a local rank, whichever agent leads its job. Returns the function that counts its end. */
  rankStarted(): () => void {
    this.ranks.inc();
    return () => this.ranks.dec();
  }

  stepped({ seconds, tokens }: Pick<SteppedMessage, 'seconds' | 'tokens'>): void {
    if (Number.isFinite(seconds.total)) this.stepSeconds.observe(seconds.total);
    this.tokens.inc(tokens);
  }

  shardStored({ shard, cost }: Pick<ShardMessage, 'shard' | 'cost'>): void {
    this.savedBytes.inc(shard.bytes);
    this.stallSeconds.observe(cost.stall_seconds);
    this.saveSeconds.inc(cost.write_seconds);
  }

  shardFailed(): void {
    this.failedShards.inc();
  }

  credentialsFailed(): void {
    this.failedCredentials.inc();
  }

  failed(code: string): void {
    this.errors.inc({ code });
  }

  preempted(reason: string): void {
    this.preemptions.inc({ reason });
  }

  private gauge(name: string, help: string): Gauge {
    return new Gauge({ name: `${PREFIX}${name}`, help, registers: [this.registry] });
  }

  private counter<L extends string = never>(name: string, help: string, labelNames: L[] = []): Counter<L> {
    return new Counter({ name: `${PREFIX}${name}`, help, labelNames, registers: [this.registry] });
  }

  private histogram(name: string, help: string, buckets: number[]): Histogram {
    return new Histogram({ name: `${PREFIX}${name}`, help, buckets, registers: [this.registry] });
  }
}

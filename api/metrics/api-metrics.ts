import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Pool } from '../../contracts/index.js';

const PREFIX = 'zerofleet_api_';
/** From a cached answer to a long upload. */
const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Prometheus metrics of one API process; names and help texts document them. */
export class ApiMetrics {
  private readonly registry = new Registry();
  private readonly requests = new Counter({
    name: `${PREFIX}requests_total`,
    help: 'Answered requests by operation ("none": unknown route) and status. Job streams are excluded.',
    labelNames: ['operation', 'status'],
    registers: [this.registry],
  });
  /**
   * Without the status: a scrape of sixteen lines for each operation and status would block the event loop for 50 ms.
   */
  private readonly requestSeconds = new Histogram({
    name: `${PREFIX}request_duration_seconds`,
    help: 'Duration of requests until the last byte of the answer, by operation. Job streams are excluded.',
    labelNames: ['operation'],
    buckets: REQUEST_BUCKETS,
    registers: [this.registry],
  });
  private readonly streams = this.gauge(`${PREFIX}open_streams`, 'Open job streams.');
  private readonly pools = {
    workers: this.gauge('zerofleet_pool_workers', 'Live workers.', ['pool']),
    slots: this.gauge('zerofleet_pool_slots', 'Slots of the live workers.', ['pool']),
    used_slots: this.gauge('zerofleet_pool_used_slots', 'Slots allocated to jobs.', ['pool']),
    running: this.gauge('zerofleet_pool_running_jobs', 'Jobs with allocated slots.', ['pool']),
    waiting: this.gauge('zerofleet_pool_waiting_jobs', 'Jobs waiting for slots.', ['pool']),
  };

  answered(operation: string, status: number, seconds: number): void {
    this.requests.inc({ operation, status });
    this.requestSeconds.observe({ operation }, seconds);
  }

  streamOpened(): void {
    this.streams.inc();
  }

  streamEnded(): void {
    this.streams.dec();
  }

  /** Content type and text of a scrape. @param pools current pools; removed pools are no longer reported */
  async scrape(pools: readonly Pool[]): Promise<{ type: string; text: string }> {
    for (const gauge of Object.values(this.pools)) gauge.reset();
    for (const { name, groups: _groups, machines: _machines, ...counts } of pools) {
      for (const [field, gauge] of Object.entries(this.pools)) {
        gauge.set({ pool: name }, counts[field as keyof typeof counts]);
      }
    }
    return { type: this.registry.contentType, text: await this.registry.metrics() };
  }

  private gauge(name: string, help: string, labelNames: string[] = []): Gauge {
    return new Gauge({ name, help, labelNames, registers: [this.registry] });
  }
}

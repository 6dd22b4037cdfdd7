/**
 * Job arrivals of a training cluster. Most jobs are small and short, few are large or long: durations are log-normal,
 * sizes are powers of two. Arrivals are more frequent by day, and some come in bursts, as of a sweep. Deterministic for
 * a seed.
 */

export interface TraceJob {
  /** Arrival, in seconds from the beginning. */
  at: number;
  need: number;
  want: number;
  /** GPU-seconds; r ranks take an r-th of it. */
  work: number;
}

export interface Trace {
  name: string;
  /** GPUs of one machine. */
  slots: number;
  /** Maximum number of GPUs. */
  gpus: number;
  boot_seconds: number;
  /** Interruptions per machine and hour, each with a notice of two minutes. */
  interruptions_per_hour: number;
  jobs: TraceJob[];
}

interface Shape extends Omit<Trace, 'jobs'> {
  hours: number;
  /** Mean jobs per hour over a day. */
  rate: number;
  /** Mean hours between bursts, and mean jobs per burst. */
  burst: { every_hours: number; jobs: number };
  /** Median duration on all requested ranks, in minutes. */
  median_minutes: number;
  sigma: number;
  /** Largest number of ranks, a power of two. */
  largest: number;
}

const BOOT_SECONDS = 180;

const SHAPES: readonly Shape[] = [
  {
    name: 'one GPU, now and then',
    slots: 1,
    gpus: 1,
    hours: 240,
    rate: 0.1,
    burst: { every_hours: 1000, jobs: 1 },
    median_minutes: 20,
    sigma: 1.2,
    largest: 1,
  },
  {
    name: 'bursts on 64 GPUs',
    slots: 1,
    gpus: 64,
    hours: 48,
    rate: 1,
    burst: { every_hours: 4, jobs: 12 },
    median_minutes: 15,
    sigma: 1,
    largest: 4,
  },
  {
    name: 'long tails on 256 GPUs',
    slots: 8,
    gpus: 256,
    hours: 48,
    rate: 8,
    burst: { every_hours: 12, jobs: 20 },
    median_minutes: 20,
    sigma: 1.6,
    largest: 32,
  },
  {
    name: 'spot, 1000 GPUs',
    slots: 8,
    gpus: 1000,
    hours: 36,
    rate: 40,
    burst: { every_hours: 8, jobs: 100 },
    median_minutes: 25,
    sigma: 1.4,
    largest: 128,
    interruptions: 0.05,
  },
  {
    name: 'a fleet of 10,000 GPUs',
    slots: 8,
    gpus: 10_000,
    hours: 24,
    rate: 250,
    burst: { every_hours: 6, jobs: 400 },
    median_minutes: 30,
    sigma: 1.3,
    largest: 1024,
    interruptions: 0.01,
  },
].map(({ interruptions = 0, ...shape }) => ({
  ...shape,
  boot_seconds: BOOT_SECONDS,
  interruptions_per_hour: interruptions,
}));

/** Mulberry32 random numbers. */
export function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const HOUR = 3600;

function jobOf({ median_minutes, sigma, largest, gpus }: Shape, at: number, random: () => number): TraceJob {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const minutes = Math.min(24 * 60, Math.max(1, median_minutes * Math.exp(sigma * normal)));
  // Each size is half as frequent as the next smaller one.
  const doublings = Math.floor(-Math.log2(1 - random()));
  const want = Math.min(largest, gpus, 2 ** doublings);
  const need = random() < 0.5 ? want : Math.max(1, want / 4);
  return { at, need, want, work: minutes * 60 * want };
}

/** Arrivals are three times as frequent by day as by night (UTC). */
const byDay = (at: number) => 1 + 0.5 * Math.sin((2 * Math.PI * at) / (24 * HOUR));

function traceOf(shape: Shape, seed: number): Trace {
  const random = randomOf(seed);
  const after = (mean: number) => -Math.log(1 - random()) * mean;
  const jobs: TraceJob[] = [];
  const end = shape.hours * HOUR;
  for (let at = after(HOUR / shape.rate / 1.5); at < end; at += after(HOUR / shape.rate / 1.5)) {
    if (random() * 1.5 < byDay(at)) jobs.push(jobOf(shape, at, random));
  }
  const { every_hours, jobs: many } = shape.burst;
  for (let at = after(every_hours * HOUR); at < end; at += after(every_hours * HOUR)) {
    const count = Math.ceil(many * (0.5 + random()));
    // A sweep: many small jobs of one kind.
    const sample = jobOf({ ...shape, largest: Math.min(4, shape.largest) }, at, random);
    for (let i = 0; i < count; i += 1) jobs.push({ ...sample, work: sample.work * (0.8 + 0.4 * random()) });
  }
  const { name, slots, gpus, boot_seconds, interruptions_per_hour } = shape;
  jobs.sort((a, b) => a.at - b.at);
  return { name, slots, gpus, boot_seconds, interruptions_per_hour, jobs };
}

export const TRACE_NAMES = SHAPES.map(({ name }) => name);

/** @param count number of traces to return */
export const tracesOf = (seed: number, count = SHAPES.length): Trace[] =>
  SHAPES.slice(0, count).map((shape, index) => traceOf(shape, seed + index));

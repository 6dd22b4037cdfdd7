/**
 * Machines and jobs on a virtual clock: what both ways of scaling have in common. Jobs get their ranks as a pool gives them (docs/pools.md):
 * in order, from `need` to `want`, a job that does not fit lets others pass for a minute, then the ranks that become free are kept for
 * it; running jobs grow when nobody waits.
 */
import { randomOf, type Trace, type TraceJob } from './traces.js';

export const STEP_SECONDS = 10;
const NOTICE_SECONDS = 120;
const HOLD_SECONDS = 60;
const GROW_SECONDS = 60;
/** After the last job has come; whoever still waits then waits for ever. */
const LIMIT_SECONDS = 3 * 86_400;
/** So many of the first in the order are looked at, as in a pool. */
const FRONT = 100;

export interface SimMachine {
  id: string;
  launched_at: number;
  ready_at: number;
  free: number;
  jobs: Set<SimJob>;
  /** Its end was announced: nothing begins there. */
  leaves_at: number;
}

export interface SimJob extends TraceJob {
  id: string;
  left: number;
  ranks: number;
  places: Map<SimMachine, number>;
  waits_since: number;
  waited: number;
  grown_at: number;
  done_at: number | null;
}

/** What scales it. */
export interface Scaler {
  /** At each step. */
  step(fleet: Fleet): void;
}

export class Fleet {
  now = 0;
  readonly machines: SimMachine[] = [];
  readonly waiting: SimJob[] = [];
  readonly running = new Set<SimJob>();
  readonly done: SimJob[] = [];
  /** Machines that should be there; those that are missing are launched, also in place of one that was taken away. */
  wanted = 0;
  gpu_seconds = 0;
  busy_killed = 0;
  interrupted = 0;
  peak_machines = 0;
  private arrived = 0;
  private launched = 0;
  private readonly random: () => number;

  constructor(readonly trace: Trace) {
    this.random = randomOf(trace.jobs.length);
  }

  /** Runs until all is done and no machine is left, or nothing more is to be expected. */
  run(scaler: Scaler): void {
    const { jobs } = this.trace;
    const limit = (jobs.at(-1)?.at ?? 0) + LIMIT_SECONDS;
    while (this.now < limit && (this.done.length < jobs.length || this.machines.length > 0)) {
      this.arrive();
      this.train();
      this.interrupt();
      this.place();
      this.grow();
      scaler.step(this);
      this.launch();
      this.peak_machines = Math.max(this.peak_machines, this.machines.length);
      this.gpu_seconds += this.machines.length * this.trace.slots * STEP_SECONDS;
      this.now += STEP_SECONDS;
    }
  }

  isReady(machine: SimMachine): boolean {
    return machine.ready_at <= this.now;
  }

  isLeaving(machine: SimMachine): boolean {
    return machine.leaves_at - NOTICE_SECONDS <= this.now;
  }

  /** Jobs that come in the next `seconds`: what nobody knows. */
  coming(seconds: number): Pick<SimJob, 'id' | 'need' | 'want' | 'ranks'>[] {
    const { jobs } = this.trace;
    const last = this.now + seconds;
    const found = [];
    for (let i = this.arrived; seconds > 0 && (jobs[i]?.at ?? Number.POSITIVE_INFINITY) <= last; i += 1) {
      const { need = 1, want = 1 } = jobs[i] ?? {};
      found.push({ id: `job-${i + 1}`, need, want, ranks: 0 });
    }
    return found;
  }

  /** Machines that are there to stay. */
  staying(): SimMachine[] {
    return this.machines.filter((machine) => !this.isLeaving(machine));
  }

  /** Ends a machine; what runs there goes back to the queue with the work of up to a step lost. */
  end(machine: SimMachine): void {
    if (machine.jobs.size > 0) this.busy_killed += 1;
    this.remove(machine);
  }

  private remove(machine: SimMachine): void {
    for (const job of machine.jobs) this.handBack(job);
    this.machines.splice(this.machines.indexOf(machine), 1);
  }

  private arrive(): void {
    const { jobs } = this.trace;
    for (let next = jobs[this.arrived]; next && next.at <= this.now; next = jobs[this.arrived]) {
      this.arrived += 1;
      const id = `job-${this.arrived}`;
      const fresh = { left: next.work, ranks: 0, places: new Map(), waited: 0, grown_at: 0, done_at: null };
      this.waiting.push({ ...next, ...fresh, id, waits_since: next.at });
    }
  }

  private train(): void {
    for (const job of this.running) {
      job.left -= job.ranks * STEP_SECONDS;
      if (job.left > 0) continue;
      this.release(job);
      job.done_at = this.now;
      this.done.push(job);
    }
  }

  private release(job: SimJob): void {
    for (const [machine, ranks] of job.places) {
      machine.free += ranks;
      machine.jobs.delete(job);
    }
    job.places.clear();
    job.ranks = 0;
    this.running.delete(job);
  }

  private handBack(job: SimJob): void {
    this.release(job);
    job.waits_since = this.now;
    const at = this.waiting.findIndex((other) => other.at > job.at);
    this.waiting.splice(at === -1 ? this.waiting.length : at, 0, job);
  }

  private interrupt(): void {
    for (const machine of [...this.machines]) {
      if (!this.isLeaving(machine)) continue;
      // At the notice everything is saved and handed back.
      for (const job of [...machine.jobs]) this.handBack(job);
      if (machine.leaves_at > this.now) continue;
      this.interrupted += 1;
      this.remove(machine);
    }
  }

  private place(): void {
    const usable = this.machines.filter((machine) => this.isReady(machine) && !this.isLeaving(machine));
    const slots = usable.length * this.trace.slots;
    let free = usable.reduce((sum, machine) => sum + machine.free, 0);
    let looked = 0;
    for (const job of [...this.waiting]) {
      looked += 1;
      if (free === 0 || looked > FRONT) break;
      if (job.need > slots) continue;
      if (job.need > free) {
        if (this.now - job.waits_since >= HOLD_SECONDS) break;
        continue;
      }
      const ranks = Math.min(job.want, free);
      free -= ranks;
      this.waiting.splice(this.waiting.indexOf(job), 1);
      job.waited += this.now - job.waits_since;
      this.running.add(job);
      this.give(job, ranks, usable);
    }
  }

  /** The emptiest machines first. */
  private give(job: SimJob, ranks: number, usable: SimMachine[]): void {
    const open = usable.filter(({ free }) => free > 0).sort((a, b) => b.free - a.free);
    let left = ranks;
    for (const machine of open) {
      const taken = Math.min(machine.free, left);
      if (taken === 0) break;
      machine.free -= taken;
      left -= taken;
      machine.jobs.add(job);
      job.places.set(machine, (job.places.get(machine) ?? 0) + taken);
    }
    job.ranks += ranks - left;
    job.grown_at = this.now;
  }

  private grow(): void {
    if (this.waiting.length > 0) return;
    const usable = this.machines.filter((machine) => this.isReady(machine) && !this.isLeaving(machine));
    let free = usable.reduce((sum, machine) => sum + machine.free, 0);
    for (const job of this.running) {
      if (free === 0) return;
      if (job.ranks >= job.want || this.now - job.grown_at < GROW_SECONDS) continue;
      const ranks = Math.min(job.want - job.ranks, free);
      free -= ranks;
      this.give(job, ranks, usable);
    }
  }

  private launch(): void {
    const { boot_seconds, slots, interruptions_per_hour } = this.trace;
    for (let count = this.staying().length; count < this.wanted; count += 1) {
      this.launched += 1;
      const life =
        interruptions_per_hour === 0
          ? Number.POSITIVE_INFINITY
          : -Math.log(1 - this.random()) / interruptions_per_hour;
      const ready_at = this.now + boot_seconds;
      this.machines.push({
        id: `m-${this.launched}`,
        launched_at: this.now,
        ready_at,
        free: slots,
        jobs: new Set(),
        leaves_at: ready_at + life * 3600,
      });
    }
  }
}

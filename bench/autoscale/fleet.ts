/**
 * Machines and jobs on a virtual clock, shared by both scalers. The product's scheduler starts, grows, preempts and
 * moves jobs; a job changes its ranks at the next step, loses no work, and trains again after a restart.
 */
import { place } from '../../scheduler/place.js';
import type { Decision, Placement, RunningJob, Snapshot } from '../../scheduler/types.js';
import { vacate } from '../../scheduler/vacate.js';
import { firstOf, type SimJob, type SimMachine, waitingJob } from './sim-job.js';
import { randomOf, type Trace } from './traces.js';

export const STEP_SECONDS = 10;
const NOTICE_SECONDS = 120;
const GROW_SECONDS = 60;
/** Time from the save of a job's ranks to the next step of the new ones. */
const RESTART_SECONDS = 30;
/** Time after the last arrival at which the simulation stops; jobs still waiting are unfinished. */
const LIMIT_SECONDS = 3 * 86_400;
const GROUP = 'sim';

/** Scales the fleet. */
export interface Scaler {
  /** Called at each step. */
  step(fleet: Fleet): void;
}

export class Fleet {
  now = 0;
  readonly machines: SimMachine[] = [];
  private readonly machineById = new Map<string, SimMachine>();
  private readonly jobById = new Map<string, SimJob>();
  readonly waiting: SimJob[] = [];
  readonly running = new Set<SimJob>();
  readonly done: SimJob[] = [];
  /** Desired number of machines; missing ones are launched, also to replace interrupted ones. */
  wanted = 0;
  gpuSeconds = 0;
  busyKilled = 0;
  /** Machines whose jobs were moved. */
  vacated = 0;
  interrupted = 0;
  peakMachines = 0;
  private arrived = 0;
  private launched = 0;
  private readonly random: () => number;

  constructor(readonly trace: Trace) {
    this.random = randomOf(trace.jobs.length);
  }

  /** Runs until all jobs and machines are gone, or nothing more can happen. */
  run(scaler: Scaler): void {
    const { jobs } = this.trace;
    const limit = (jobs.at(-1)?.at ?? 0) + LIMIT_SECONDS;
    while (this.now < limit && (this.done.length < jobs.length || this.machines.length > 0)) {
      this.arrive();
      this.train();
      this.interrupt();
      this.makeRoom();
      this.place();
      scaler.step(this);
      this.launch();
      this.peakMachines = Math.max(this.peakMachines, this.machines.length);
      this.gpuSeconds += this.machines.length * this.trace.slots * STEP_SECONDS;
      this.now += STEP_SECONDS;
    }
  }

  isReady(machine: SimMachine): boolean {
    return machine.ready_at <= this.now;
  }

  isLeaving(machine: SimMachine): boolean {
    return machine.leaves_at - NOTICE_SECONDS <= this.now;
  }

  /** Jobs that arrive within `seconds`: unknown to a real scaler. */
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

  /** Machines without an announced end. */
  stayingMachines(): SimMachine[] {
    return this.machines.filter((machine) => !this.isLeaving(machine));
  }

  /** Ends a machine; its jobs return to the queue and lose up to one step. */
  end(machine: SimMachine): void {
    if (machine.jobs.size > 0) this.busyKilled += 1;
    this.remove(machine);
  }

  private remove(machine: SimMachine): void {
    for (const job of machine.jobs) this.releaseRanks(job);
    this.machines.splice(this.machines.indexOf(machine), 1);
    this.machineById.delete(machine.id);
  }

  private arrive(): void {
    const { jobs } = this.trace;
    for (let next = jobs[this.arrived]; next && next.at <= this.now; next = jobs[this.arrived]) {
      this.arrived += 1;
      const id = `job-${this.arrived}`;
      const fresh = {
        left: next.work,
        ranks: 0,
        placements: new Map(),
        waited: 0,
        grown_at: 0,
        trains_at: 0,
        done_at: null,
      };
      const standing = { waits_since: next.at, granted_priority: 0, request: null, move: null };
      const job = { ...next, ...fresh, ...standing, id };
      this.jobById.set(id, job);
      this.waiting.push(job);
    }
  }

  private train(): void {
    for (const job of this.running) {
      if (job.trains_at > this.now) continue;
      job.left -= job.ranks * STEP_SECONDS;
      if (job.left > 0) continue;
      this.release(job);
      this.jobById.delete(job.id);
      job.done_at = this.now;
      this.done.push(job);
    }
  }

  private release(job: SimJob): void {
    for (const [machine, ranks] of job.placements) {
      machine.free += ranks;
      machine.jobs.delete(job);
    }
    job.placements.clear();
    job.ranks = 0;
    job.request = null;
    job.move = null;
    this.running.delete(job);
  }

  private releaseRanks(job: SimJob): void {
    this.release(job);
    job.waits_since = this.now;
    const at = this.waiting.findIndex((other) => other.at > job.at);
    this.waiting.splice(at === -1 ? this.waiting.length : at, 0, job);
  }

  private interrupt(): void {
    for (const machine of [...this.machines]) {
      if (!this.isLeaving(machine)) continue;
      // On an interruption notice everything is saved and released.
      for (const job of [...machine.jobs]) this.releaseRanks(job);
      if (machine.leaves_at > this.now) continue;
      this.interrupted += 1;
      this.remove(machine);
    }
  }

  /** Moves the jobs of a machine to others, if they fit. */
  vacate(machine: SimMachine): void {
    const moves = vacate(this.snapshot(), [machine.id]);
    if (!moves) return;
    machine.retiring = true;
    this.vacated += 1;
    for (const { job_id, placements } of moves) this.job(job_id).move = placements;
  }

  /** Executes the preemption requests and moves of the previous step. */
  private makeRoom(): void {
    for (const job of [...this.running]) {
      if (job.request?.ranks === 0) this.releaseRanks(job);
      else if (job.request) this.give(job, firstOf(job.placements, job.request.ranks));
      else if (job.move) this.give(job, job.move);
      job.request = null;
      job.move = null;
    }
  }

  private place(): void {
    const usable = this.machines.filter((machine) => this.isUsable(machine));
    const free = usable.some((machine) => machine.free > 0);
    const grows = free && [...this.running].some((job) => this.mayGrow(job));
    if (usable.length === 0 || (this.waiting.length === 0 && !grows)) return;
    const { starts, growth, requests } = place(this.snapshot());
    for (const start of starts) this.begin(this.job(start.job_id), start);
    for (const { job_id, placements } of growth) this.give(this.job(job_id), placements);
    for (const { job_id, request } of requests) this.job(job_id).request = request;
    const begun = new Set(starts.map(({ job_id }) => job_id));
    const left = this.waiting.filter(({ id }) => !begun.has(id));
    this.waiting.splice(0, this.waiting.length, ...left);
  }

  private job(id: string): SimJob {
    return this.jobById.get(id) as SimJob;
  }

  private isUsable(machine: SimMachine): boolean {
    return this.isReady(machine) && !this.isLeaving(machine) && !machine.retiring;
  }

  snapshot(): Snapshot {
    const { slots } = this.trace;
    const usable = this.machines.filter((machine) => this.isUsable(machine));
    return {
      now: this.now * 1000,
      workers: usable.map(({ id }) => ({
        id,
        group: GROUP,
        slots,
        schedulable: true,
        gpu_bytes: null,
        topology: [],
      })),
      running: [...this.running].map((job) => this.runningJob(job)),
      waiting: this.waiting.map((job) => waitingJob(job)),
      served_at: new Map(),
    };
  }

  private runningJob(job: SimJob): RunningJob {
    const placements = [...job.placements].map(([{ id }, ranks]) => ({ worker_id: id, ranks }));
    const { granted_priority, request, move } = job;
    return {
      ...waitingJob(job),
      placements,
      granted_priority,
      request,
      move,
      may_change: this.now - job.grown_at >= GROW_SECONDS,
    };
  }

  private mayGrow({ ranks, want, grown_at }: SimJob): boolean {
    return ranks < want && this.now - grown_at >= GROW_SECONDS;
  }

  private begin(job: SimJob, { placements, granted_priority }: Decision['starts'][number]): void {
    job.waited += this.now - job.waits_since;
    job.granted_priority = granted_priority;
    this.running.add(job);
    this.give(job, placements);
  }

  /** Replaces the ranks of a job. */
  private give(job: SimJob, placements: readonly Placement[]): void {
    for (const [machine, ranks] of job.placements) {
      machine.free += ranks;
      machine.jobs.delete(job);
    }
    const machineOf = ({ worker_id }: Placement) => this.machineById.get(worker_id) as SimMachine;
    job.placements = new Map(placements.map((placement) => [machineOf(placement), placement.ranks]));
    for (const [machine, ranks] of job.placements) {
      machine.free -= ranks;
      machine.jobs.add(job);
    }
    job.ranks = placements.reduce((sum, { ranks }) => sum + ranks, 0);
    job.grown_at = this.now;
    job.trains_at = this.now + STEP_SECONDS + RESTART_SECONDS;
  }

  private launch(): void {
    const { boot_seconds, slots, interruptions_per_hour } = this.trace;
    for (let count = this.stayingMachines().length; count < this.wanted; count += 1) {
      this.launched += 1;
      const life =
        interruptions_per_hour === 0
          ? Number.POSITIVE_INFINITY
          : -Math.log(1 - this.random()) / interruptions_per_hour;
      const readyAt = this.now + boot_seconds;
      const machine: SimMachine = {
        id: `m-${this.launched}`,
        launched_at: this.now,
        ready_at: readyAt,
        free: slots,
        jobs: new Set(),
        leaves_at: readyAt + life * 3600,
        retiring: false,
      };
      this.machines.push(machine);
      this.machineById.set(machine.id, machine);
    }
  }
}

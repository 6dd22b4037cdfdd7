import { ZerofleetError } from '../../contracts/index.js';
import type { GradedItem } from '../grader.js';
import { Slots } from '../slots.js';
import { type PythonLimits, PythonProcess } from './python-process.js';

export interface PythonPoolOptions {
  /** Name or path of Python. */
  program: string;
  /** Maximum of processes. */
  processes: number;
  limits: PythonLimits;
}

/** Idle time after which a process ends. */
const IDLE_MS = 30_000;

interface Idle {
  process: PythonProcess;
  source: string;
  timer: NodeJS.Timeout;
}

/** The one that asks for a grade. */
interface Asker {
  project: string;
  signal: AbortSignal;
}

/** Processes of Python, each of which has one source. An idle one is kept for further answers. */
export class PythonPool {
  private readonly slots: Slots;
  private readonly busy = new Set<PythonProcess>();
  /** The longest idle one first. */
  private readonly idle: Idle[] = [];
  private readonly closing = new AbortController();

  constructor(private readonly options: PythonPoolOptions) {
    this.slots = new Slots(options.processes);
  }

  /** @throws GraderFault; the signal's reason; ZerofleetError `shutting_down` */
  grade(source: string, graded: GradedItem, asker: Asker): Promise<number> {
    return this.withProcess(source, asker, (process) => process.grade(graded));
  }

  /** Compiles a source. @throws as grade() */
  check(source: string, asker: Asker): Promise<void> {
    return this.withProcess(source, asker, async () => undefined);
  }

  /** Ends all processes. Idempotent. */
  async close(): Promise<void> {
    this.closing.abort(new ZerofleetError('shutting_down', 'the graders end because the process does'));
    const all = [...this.busy, ...this.idle.splice(0).map((entry) => this.released(entry))];
    await Promise.all(all.map((process) => process.end()));
  }

  private withProcess<T>(
    source: string,
    { project, signal: given }: Asker,
    task: (process: PythonProcess) => Promise<T>,
  ): Promise<T> {
    const signal = AbortSignal.any([given, this.closing.signal]);
    return this.slots.run(project, signal, async () => {
      const kept = this.takeIdle(source);
      if (kept === null) await this.makeRoom();
      const { program, limits } = this.options;
      const process = kept ?? new PythonProcess(program, limits);
      const leave = () => void process.end();
      this.busy.add(process);
      signal.addEventListener('abort', leave, { once: true });
      try {
        signal.throwIfAborted();
        if (kept === null) await process.start(source);
        return await task(process);
      } catch (error) {
        signal.throwIfAborted();
        throw error;
      } finally {
        signal.removeEventListener('abort', leave);
        this.busy.delete(process);
        await this.giveBack(process, source);
      }
    });
  }

  private takeIdle(source: string): PythonProcess | null {
    for (const dead of this.idle.filter(({ process }) => !process.isOpen)) {
      this.idle.splice(this.idle.indexOf(dead), 1);
      this.released(dead);
    }
    const index = this.idle.findLastIndex((entry) => entry.source === source);
    const [entry] = index === -1 ? [] : this.idle.splice(index, 1);
    return entry === undefined ? null : this.released(entry);
  }

  /** Ends the longest idle process if there would be too many. Each slot in use has one process, or makes room for it. */
  private async makeRoom(): Promise<void> {
    const isFull = this.slots.taken + this.idle.length > this.options.processes;
    const oldest = isFull ? this.idle.shift() : undefined;
    if (oldest !== undefined) await this.released(oldest).end();
  }

  private async giveBack(process: PythonProcess, source: string): Promise<void> {
    if (!process.isOpen || this.closing.signal.aborted) return process.end();
    const timer = setTimeout(() => {
      this.idle.splice(this.idle.indexOf(entry), 1);
      void process.end();
    }, IDLE_MS);
    const entry: Idle = { process, source, timer };
    this.idle.push(entry);
  }

  private released({ process, timer }: Idle): PythonProcess {
    clearTimeout(timer);
    return process;
  }
}

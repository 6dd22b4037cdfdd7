import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import type { GradeError } from '../../contracts/index.js';
import { encodeFrame, FrameReader } from '../../platform/process/frames.js';
import { projectRoot } from '../../platform/process/root.js';
import { Check, Type } from '../../platform/schema.js';
import { type GradedItem, GraderFault } from '../grader.js';

/** Limits of one grade. */
export interface PythonLimits {
  seconds: number;
  cpu_seconds: number;
  memory_bytes: number;
}

const Frame = new Check(
  Type.Object({
    score: Type.Optional(Type.Number()),
    error: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
    /** The process ends after this frame. */
    last: Type.Optional(Type.Boolean()),
  }),
);
/** Maximum lengths of a frame and of its message, as in serve.py. A grade may write a longer message itself. */
const FRAME_BYTES = 32 * 1024;
const MESSAGE_LENGTH = 2000;
/** Time beyond a grade's own limit after which the process is killed. */
const GRACE_SECONDS = 10;
/** Time for the start of Python and the import of the source's modules. */
const START_SECONDS = 60;

/**
 * A process that grades answers with one source, one at a time (serve.py). A grade has no environment variables,
 * and the process ends with this one.
 */
export class PythonProcess {
  /** True while it can take another answer. */
  isOpen = true;
  private readonly child: ChildProcessByStdio<Writable, Readable, null>;
  private readonly reader = new FrameReader(FRAME_BYTES);
  private hasStarted = false;
  private waiting: { resolve(frame: unknown): void; reject(error: Error): void } | null = null;
  private readonly ended: Promise<void>;

  constructor(
    program: string,
    private readonly limits: PythonLimits,
  ) {
    this.child = spawn(program, ['-s', '-B', join(projectRoot(), 'graders', 'python', 'serve.py')], {
      cwd: '/',
      stdio: ['pipe', 'pipe', 'ignore'],
      // Grades repeat with the same order of sets; libraries of linear algebra start no threads.
      env: {
        PATH: process.env.PATH,
        PYTHONHASHSEED: '0',
        OPENBLAS_NUM_THREADS: '1',
        OMP_NUM_THREADS: '1',
      },
    });
    this.ended = new Promise((resolve) => {
      this.child.once('close', (status, signal) => {
        const reason = `ended with ${signal ?? `status ${status}`} before it had read the source`;
        this.fail(this.hasStarted ? this.died() : unavailable(`${program} ${reason}`));
        resolve();
      });
      this.child.once('error', (error) => {
        this.fail(unavailable(`${program} cannot be started (${error.message})`));
        resolve();
      });
    });
    this.child.stdin.on('error', () => undefined);
    this.child.stdout.on('data', (piece: Buffer) => this.hear(piece));
  }

  /** Compiles the source. Called once, first. @throws GraderFault; the process is closed then */
  async start(source: string): Promise<void> {
    const seconds = START_SECONDS + 2 * this.limits.seconds;
    try {
      await this.ask({ source, limits: this.limits }, seconds, 'python_unavailable');
    } catch (error) {
      this.isOpen = false;
      throw error;
    }
  }

  /** @throws GraderFault */
  async grade(graded: GradedItem): Promise<number> {
    const { score } = await this.ask(graded, this.limits.seconds + GRACE_SECONDS, 'python_time_limit');
    if (score === undefined) throw this.broken();
    return score;
  }

  /** Kills the process and its grade. Idempotent. */
  async end(): Promise<void> {
    this.isOpen = false;
    this.child.kill('SIGKILL');
    await this.ended;
  }

  private async ask(request: object, seconds: number, late: GradeError['code']): Promise<{ score?: number }> {
    if (!this.isOpen) throw this.died();
    const timer = setTimeout(() => {
      this.fail(new GraderFault(late, `Python has not answered for ${seconds} s`));
      this.child.kill('SIGKILL');
    }, seconds * 1000);
    try {
      const frame = await new Promise<unknown>((resolve, reject) => {
        this.waiting = { resolve, reject };
        this.child.stdin.write(encodeFrame(request));
      });
      return this.read(frame);
    } finally {
      clearTimeout(timer);
    }
  }

  private read(frame: unknown): { score?: number } {
    if (!Frame.fits(frame) || (frame.score !== undefined && !Number.isFinite(frame.score)))
      throw this.broken();
    if (frame.error === undefined) return frame;
    if (frame.last === true) this.isOpen = false;
    const { code, message } = frame.error;
    throw new GraderFault(
      CODES.find((known) => known === code) ?? 'python_failed',
      message.slice(0, MESSAGE_LENGTH),
    );
  }

  private died(): GraderFault {
    return new GraderFault('python_died', 'the process of the grader ended');
  }

  /** The source wrote to the pipe of its result. */
  private broken(): GraderFault {
    return new GraderFault('python_result_invalid', 'the grader wrote something else than its result');
  }

  private hear(piece: Buffer): void {
    this.reader.push(piece);
    try {
      for (let frame = this.reader.next(); frame !== undefined; frame = this.reader.next()) {
        if (this.waiting === null) throw new Error('a frame without a request');
        this.hasStarted = true;
        this.waiting.resolve(frame);
        this.waiting = null;
      }
    } catch {
      this.fail(this.broken());
      this.child.kill('SIGKILL');
    }
  }

  private fail(error: GraderFault): void {
    this.isOpen = false;
    this.waiting?.reject(error);
    this.waiting = null;
  }
}

function unavailable(reason: string): GraderFault {
  const advice = 'install Python 3.9 or later, or set ZEROFLEET_GRADER_PYTHON';
  return new GraderFault('python_unavailable', `${reason}: ${advice}`);
}

/** Codes that serve.py sends. */
const CODES = [
  'python_unavailable',
  'python_source_invalid',
  'python_failed',
  'python_forbidden',
  'python_result_invalid',
  'python_time_limit',
  'python_memory_limit',
  'python_output_limit',
  'python_died',
] as const satisfies readonly GradeError['code'][];

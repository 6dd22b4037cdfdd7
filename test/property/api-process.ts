import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../../platform/process/root.js';

/** Ids of existing objects, by their prefix. */
export type Ids = Record<string, string[]>;

export interface Order {
  kind: 'fill' | 'rest' | 'watch' | 'watched';
  /** Ids that are known already. */
  ids?: Ids;
}

interface Watched {
  p99_ms: number;
  max_ms: number;
  lease_error: string | null;
}

export type FromApi = { value: unknown } | { error: string };

/** Settings of the C library's allocator in the API's image. */
function allocatorEnv(): Record<string, string> {
  const image = readFileSync(join(projectRoot(), 'infra/images/Dockerfile'), 'utf8');
  const settings = Array.from(image.matchAll(/^ENV (MALLOC_\w+)=(\d+)$/gm), ([, name, value]) => [
    name,
    value,
  ]);
  return Object.fromEntries(settings);
}

/** An API in its own process (api-main.ts), with functions beyond HTTP. */
export class ApiProcess {
  private constructor(
    readonly url: string,
    private readonly child: ChildProcess,
    private readonly order: (order: Order) => Promise<unknown>,
  ) {}

  static async start(): Promise<ApiProcess> {
    const module = new URL('api-main.js', import.meta.url);
    const child = fork(module, {
      execArgv: ['--expose-gc', '--enable-source-maps'],
      env: { ...process.env, ...allocatorEnv() },
    });
    const ended = once(child, 'exit').then(([code]): never => {
      throw new Error(`the API ended with code ${code}`);
    });
    ended.catch(() => undefined);
    const answer = async () => {
      const [message] = (await Promise.race([once(child, 'message'), ended])) as [FromApi];
      if ('error' in message) throw new Error(message.error);
      return message.value;
    };
    const url = (await answer()) as string;
    return new ApiProcess(url, child, async (order) => {
      const answered = answer();
      child.send(order);
      return answered;
    });
  }

  /** Creates an object of each kind, in states that requests alone do not reach. */
  fill(ids: Ids): Promise<Ids> {
    return this.order({ kind: 'fill', ids }) as Promise<Ids>;
  }

  /** Memory in use when idle, in MiB. */
  restingMib(): Promise<number> {
    return this.order({ kind: 'rest' }) as Promise<number>;
  }

  /** Starts measuring the delay of the event loop. */
  async watchDelay(): Promise<void> {
    await this.order({ kind: 'watch' });
  }

  /** Delay of the event loop, and the code with which the lease of a held job was lost, if it was. */
  watched(): Promise<Watched> {
    return this.order({ kind: 'watched' }) as Promise<Watched>;
  }

  async close(): Promise<void> {
    if (this.child.connected) this.child.disconnect();
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'exit');
  }
}

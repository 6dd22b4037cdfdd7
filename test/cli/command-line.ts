/** Helpers of the command line tests. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import type { Test } from 'tap';
import { ADMIN_KEY, startTestStack, type TestStackOptions } from '../../api/testing/stack.js';
import type { Environment } from '../../clients/cli/context.js';
import { runCli } from '../../clients/cli/program.js';
import { projectRoot } from '../../platform/process/root.js';

class Collected extends Writable {
  text = '';

  constructor(
    private readonly onText: (text: string) => void = () => undefined,
    readonly columns?: number,
  ) {
    super();
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    this.onText(this.text);
    done();
  }
}

interface Outcome {
  code: number;
  out: string;
  err: string;
}

/** Runs a command in this process. */
type Zerofleet = (
  args: string[],
  options?: { stdin?: string; signal?: AbortSignal; onOut?: (out: string) => void; columns?: number },
) => Promise<Outcome>;

export function commandLine(env: Environment['env']): Zerofleet {
  return async (args, { stdin = '', signal = new AbortController().signal, onOut, columns } = {}) => {
    const [stdout, stderr] = [new Collected(onOut, columns), new Collected()];
    const environment = {
      env,
      stdin: Readable.from([Buffer.from(stdin)]),
      stdout,
      stderr,
      signal,
      root: projectRoot(),
    };
    const code = (await runCli(args, environment)) ?? 0;
    return { code, out: stdout.text.trimEnd(), err: stderr.text.trimEnd() };
  };
}

/** The real API, and a command line with an admin key. */
export async function start(t: Test, options: TestStackOptions = {}) {
  const stack = await startTestStack(options);
  const dir = await mkdtemp(join(tmpdir(), 'zf-cli-'));
  t.teardown(async () => {
    await stack.close();
    await rm(dir, { recursive: true });
  });
  const url = await stack.listen();
  const zerofleet = commandLine({ ZEROFLEET_URL: url, ZEROFLEET_API_KEY: ADMIN_KEY });
  const file = async (name: string, text: string) => {
    await writeFile(join(dir, name), text);
    return join(dir, name);
  };
  return { stack, zerofleet, file, dir, url };
}

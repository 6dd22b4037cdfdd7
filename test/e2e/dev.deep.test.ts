/**
 * `npm run dev` on a copy of this checkout: changes are compiled and the stack is restarted; compile errors leave the
 * stack unchanged.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { cleanEnvironment } from '../support/stack.js';

/** A compiler runs for each change. */
const TIMEOUT_MS = 600_000;
/** The compiled core in a build folder. CMake binds the rest of the folder to its path. */
const CORE = /^native\/build(\/(zerofleet\.node|\.stamp-release))?$/;
const LEFT_OUT = /^(node_modules|\.git|\.build|\.tap|\.zerofleet|native\/build[^/]*(\/.*)?)$/;

/** Sources with their compiled outputs; packages are linked. */
function copyCheckout(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'zf-dev-'));
  t.teardown(() => rmSync(dir, { recursive: true }));
  const root = projectRoot();
  const isCopied = (path: string) => CORE.test(path) || !LEFT_OUT.test(path);
  cpSync(root, dir, { recursive: true, filter: (path) => isCopied(path.slice(root.length + 1)) });
  symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
  return dir;
}

class DevelopmentStack {
  private output = '';

  private readonly streams: Readable[];
  private readonly exited: Promise<unknown>;

  private constructor(private readonly child: ChildProcessByStdio<null, Readable, Readable>) {
    this.exited = once(child, 'exit');
    this.streams = [child.stdout, child.stderr];
    for (const stream of this.streams) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
      });
    }
  }

  static start(t: Test, dir: string): DevelopmentStack {
    const env = {
      ...cleanEnvironment(),
      ZEROFLEET_PORT: '0',
      ZEROFLEET_DATA_DIR: join(dir, 'data'),
      ZEROFLEET_LOG_LEVEL: 'warn',
    };
    const child = spawn(process.execPath, [join(dir, 'tools', 'dev.mjs')], {
      cwd: dir,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const stack = new DevelopmentStack(child);
    t.teardown(() => stack.stop());
    return stack;
  }

  /**
   * Waits for output after the first `printed` characters. @returns the first group of the pattern, and the end of the
   * output
   */
  async see(pattern: RegExp, printed = 0): Promise<{ found: string; printed: number }> {
    for (;;) {
      const match = pattern.exec(this.output.slice(printed));
      if (match) return { found: match[1] ?? '', printed: this.output.length };
      if (this.child.exitCode !== null) throw new Error(`it has ended:\n${this.output}`);
      await Promise.race([...this.streams.map((stream) => once(stream, 'data')), this.exited]);
    }
  }

  async stop(): Promise<number | null> {
    this.child.kill('SIGTERM');
    await this.exited;
    return this.child.exitCode;
  }
}

const READY = /^ready (http:\S+)$/m;

t.setTimeout(TIMEOUT_MS);

t.test('sources change while the stack runs', async (t) => {
  const dir = copyCheckout(t);
  const change = (file: string, before: string, after: string) => {
    const text = readFileSync(join(dir, file), 'utf8');
    t.ok(text.includes(before), `${file} contains the text to replace`);
    writeFileSync(join(dir, file), text.replace(before, after));
  };
  const stack = DevelopmentStack.start(t, dir);
  const first = await stack.see(READY);
  const health = async (url: string) => (await fetch(`${url}/healthz`)).json();
  t.match(await health(first.found), { status: 'ok' });

  t.comment('compile errors are reported, and the stack keeps running');
  change('api/handlers/fleet/service.ts', 'version: PROGRAM_VERSION }', 'version: PROGRAM_VERSION(1) }');
  const refused = await stack.see(/(error TS2349)[\s\S]*restarted once this compiles/, first.printed);
  t.equal(refused.found, 'error TS2349');
  t.match(await health(first.found), { status: 'ok' });

  t.comment('compiled changes are served');
  change('api/handlers/fleet/service.ts', 'PROGRAM_VERSION(1)', "PROGRAM_VERSION.concat('-changed')");
  const second = await stack.see(READY, refused.printed);
  t.match(await health(second.found), { version: /-changed$/ });

  t.comment('contract changes are served');
  change('contracts/openapi/openapi.yaml', 'title: ', 'title: Another ');
  const third = await stack.see(READY, second.printed);
  t.match(await (await fetch(`${third.found}/openapi.yaml`)).text(), /title: Another /);
  t.equal(await stack.stop(), 0, 'it ends in order');
});

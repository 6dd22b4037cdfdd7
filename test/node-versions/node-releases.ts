/**
 * Other versions of Node.js for tests, from npm's binary packages. Each is downloaded once, to `.build/node/VERSION`.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { projectRoot } from '../../platform/process/root.js';

const run = promisify(execFile);
const PACKAGE = `node-${process.platform}-${process.arch}`;
const CACHE = join(projectRoot(), '.build', 'node');
/** Short timeouts, for an unreachable registry. */
const NPM_OPTIONS = ['--fetch-retries=1', '--fetch-timeout=60000'];

export interface NodeRelease {
  version: string;
  /** Path of its `node`. */
  program: string;
}

const programOf = (version: string) => join(CACHE, version, 'bin', 'node');

const newest = (versions: readonly string[]): string | undefined =>
  versions.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1);

async function npm(...args: string[]): Promise<string> {
  const { stdout } = await run('npm', [...args, '--json', ...NPM_OPTIONS], { cwd: projectRoot() });
  return stdout;
}

/** The newest release in the registry, else the newest downloaded one. @param line e.g. `22` or `20.11` */
async function newestVersion(line: string): Promise<string> {
  try {
    const versions = JSON.parse(await npm('view', `${PACKAGE}@${line}`, 'version')) as string | string[];
    const version = newest([versions].flat());
    if (version) return version;
    throw new Error(`there is no ${PACKAGE}@${line}`);
  } catch (error) {
    const cached = existsSync(CACHE) ? readdirSync(CACHE).filter((name) => name.startsWith(`${line}.`)) : [];
    const version = newest(cached);
    if (version) return version;
    throw error;
  }
}

async function download(version: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true });
  const folder = mkdtempSync(join(CACHE, 'partial-'));
  try {
    const packed = await npm('pack', `${PACKAGE}@${version}`, '--pack-destination', folder);
    const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
    await run('tar', ['-xzf', join(folder, filename), '-C', folder, 'package/bin/node']);
    renameSync(join(folder, 'package'), join(CACHE, version));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * The newest release of a release line.
 * @param line e.g. `22` or `20.11`
 * @returns the reason in one line if it is unavailable: the text of a test's `skip`
 */
export async function nodeRelease(line: string): Promise<NodeRelease | string> {
  try {
    const version = await newestVersion(line);
    const program = programOf(version);
    if (!existsSync(program)) await download(version);
    return { version, program };
  } catch (error) {
    return `Node.js ${line} is not available from npm: ${(error as Error).message.split('\n')[0]}`;
  }
}

/** The package as users get it: packed, installed in another folder, its README's example compiled and run. */
import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { startStack } from '../support/stack.js';

const run = promisify(execFile);
const inRoot = (...parts: string[]) => join(projectRoot(), ...parts);

/** Strict options, without the types of Node.js. */
const CONFIG = {
  compilerOptions: {
    strict: true,
    target: 'ES2022',
    module: 'NodeNext',
    lib: ['ES2023', 'DOM', 'DOM.Iterable', 'DOM.AsyncIterable'],
    types: [],
    skipLibCheck: false,
    exactOptionalPropertyTypes: true,
  },
  files: ['example.ts'],
};

interface Manifest {
  version: string;
  dependencies: Record<string, string>;
}

/** Copies an installed package with its dependencies, like `npm install`. */
async function install(name: string, modules: string): Promise<void> {
  await cp(inRoot('node_modules', name), join(modules, name), { recursive: true, dereference: true });
  const manifest = JSON.parse(
    await readFile(join(modules, name, 'package.json'), 'utf8'),
  ) as Partial<Manifest>;
  for (const needed of Object.keys(manifest.dependencies ?? {})) await install(needed, modules);
}

t.test('the packed client compiles and runs without the rest of zerofleet', async (t) => {
  const dir = t.testdir();
  const modules = join(dir, 'node_modules');
  const folder = join(modules, '@zerofleet', 'client');
  await mkdir(folder, { recursive: true });
  await run(process.execPath, [inRoot('tools', 'pack-client.mjs'), '--out', dir]);
  const archive = (await readdir(dir)).find((name) => name.endsWith('.tgz')) ?? '';
  await run('tar', ['-xzf', join(dir, archive), '-C', folder, '--strip-components=1']);
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;
  const project = JSON.parse(await readFile(inRoot('package.json'), 'utf8')) as Manifest;
  t.equal(manifest.version, project.version);
  for (const [name, version] of Object.entries(manifest.dependencies)) {
    t.equal(version, project.dependencies[name]);
    await install(name, modules);
  }

  const readme = await readFile(join(folder, 'README.md'), 'utf8');
  const [, example = ''] = readme.match(/```ts\n([\s\S]*?)```/) ?? [];
  await writeFile(join(dir, 'example.ts'), example);
  await writeFile(join(dir, 'package.json'), '{"type": "module"}');
  await writeFile(join(dir, 'tsconfig.json'), JSON.stringify(CONFIG));
  await run(process.execPath, [inRoot('node_modules', 'typescript', 'bin', 'tsc'), '-p', dir]).catch(
    ({ stdout }: { stdout: string }) => t.fail(stdout),
  );

  const { client } = await startStack(t);
  const env = {
    ...process.env,
    ZEROFLEET_URL: client.options.baseUrl,
    ZEROFLEET_API_KEY: client.options.apiKey,
  };
  const { stdout } = await run(process.execPath, [join(dir, 'example.js')], { env });
  t.match(stdout, /^step 1: loss \d/);
  t.match(stdout, /\nstep 20: loss \d/);
  t.match(stdout, /\ncheckpoint ckpt_\w+ of step 20: digest [0-9a-f]{32}\n/);
  t.match(stdout, /\n\/train\/steps: /);
});

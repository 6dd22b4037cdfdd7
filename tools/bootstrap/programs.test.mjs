import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { listFiles } from './fingerprint.mjs';
import { inRoot, ROOMS } from './paths.mjs';

/** Modules of packages that look for files beside themselves, in parts that no program calls. */
const UNUSED = {
  '@huggingface/hub/dist/sha256-wrapper-ITDNMKRK.mjs': 'hashes in browsers; Node.js hashes by itself',
  'bullmq/dist/cjs/classes/worker.js': 'processors in files of their own; ours are functions',
  'ioredis/built/Command.js': 'friendly stacks of errors, an option that is off',
  'msgpackr-extract/index.js': 'native strings of msgpackr, which reads without them as well',
  'msgpackr/dist/node.cjs': 'the same',
  'pino/lib/transport.js': 'threads of transports; loggers write to streams',
  'thread-stream/index.js': 'the same',
};
const OWN_FOLDER = /\b__dirname\b|\b__filename\b|import\.meta\.(url|dirname|filename)/;
/** Chunks that a bundled module imports. */
const CHUNK = /"((?:\.\.\/)*(?:\.\/)?(?:chunks\/)?[\w.-]+-[\w-]{8}\.js)"/g;
const COMMENT = /\/\*[\s\S]*?\*\/|\/\/.*$/gm;

/** Files of dist/ that programs import, without those that an earlier build left. */
function bundledFiles() {
  const files = new Set(listFiles(['dist'], (path) => path.endsWith('/') || path.endsWith('main.js')));
  for (const file of files) {
    const text = readFileSync(inRoot(file), 'utf8');
    for (const [, path] of text.matchAll(CHUNK)) files.add(join(dirname(file), path));
  }
  return files;
}

/** Modules of packages that are bundled into dist/, with their text. */
function bundledModules() {
  const modules = new Map();
  const maps = [...bundledFiles()].map((file) => inRoot(`${file}.map`));
  for (const file of maps.filter(existsSync)) {
    const { sources, sourcesContent } = JSON.parse(readFileSync(file, 'utf8'));
    for (const [index, source] of sources.entries()) {
      const [, module] = /node_modules\/(.*)$/.exec(source) ?? [];
      if (module) modules.set(module, sourcesContent[index] ?? '');
    }
  }
  return modules;
}

t.test('no bundled module of a package looks for files beside itself', async (t) => {
  const modules = bundledModules();
  t.ok(modules.size > 500, `${modules.size} modules`);
  const found = [...modules].filter(([, text]) => OWN_FOLDER.test(text.replaceAll(COMMENT, '')));
  t.same(found.map(([module]) => module).sort(), Object.keys(UNUSED).sort());
});

t.test('each program that a source names is bundled', async (t) => {
  const isSource = (path) =>
    path.endsWith('/') ? !/node_modules|^(compiled|dist)\/$/.test(path) : /\.ts$/.test(path);
  const names = listFiles([...ROOMS, 'bench', 'test'], isSource).flatMap((file) =>
    [...readFileSync(inRoot(file), 'utf8').matchAll(/(programPath|testProgram)\('([^']+)'\)/g)].map(
      ([, kind, name]) => join(kind === 'programPath' ? 'dist' : 'compiled/programs', `${name}.js`),
    ),
  );
  t.ok(names.length > 10);
  for (const name of new Set(names)) t.ok(readFileSync(inRoot(name)).length > 0, name);
});

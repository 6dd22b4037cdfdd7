/** Runs the commands of docs/fine-tuning.md against a stack started like `npm start`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { cannotRead, readPage } from './reader.js';

const PAGE = readFileSync(join(projectRoot(), 'docs', 'fine-tuning.md'), 'utf8');

t.test('fine-tuning', { skip: cannotRead }, async (t) => {
  const { read, blocks } = await readPage(t, PAGE);
  await read(t, blocks);
});

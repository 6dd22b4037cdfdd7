/** Uploads of the universal checkpoint of formats/torch-file/golden, with changed files. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import tar from 'tar-stream';
import { collect } from '../../formats/testing/byte-source.js';
import { tarOf } from '../../formats/testing/models.js';
import { inMemory, TorchFileWriter } from '../../formats/torch-file/write.js';
import { projectRoot } from '../../platform/process/root.js';
import { startTestStack } from './stack.js';

export const GOLDEN = join(projectRoot(), 'formats/torch-file/golden');
const ARCHIVE = readFileSync(join(GOLDEN, 'universal.tar'));
export const ZERO = 'global_step12_universal/zero';
export const NORM = `${ZERO}/model.norm.weight`;

async function filesOf(archive: Buffer): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>();
  const extract = tar.extract();
  extract.end(archive);
  for await (const entry of extract) files.set(entry.header.name, await collect(entry));
  return files;
}

/** A file of torch.save with one tensor: flat as in stage 3, or in a dict. */
export const tensorFile = (shape: number[], values: number[], wrapped = true) => {
  const writer = new TorchFileWriter();
  const made = writer.tensor('F32', shape, inMemory(new Uint8Array(Float32Array.from(values).buffer)));
  return collect(writer.file(wrapped ? new Map([['param', made]]) : made));
};

/** A stack, and a function that uploads the checkpoint to it. */
export async function universalUploads(t: Test) {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const golden = await filesOf(ARCHIVE);
  const upload = async (change: (files: Map<string, Buffer>) => unknown = () => undefined) => {
    const files = new Map(golden);
    await change(files);
    return stack.request({
      method: 'POST',
      url: '/v1/models?name=universal',
      headers: { 'content-type': 'application/x-tar' },
      payload: await tarOf(files),
    });
  };
  return { stack, upload };
}

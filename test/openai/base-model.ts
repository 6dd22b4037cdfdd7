import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { tarOf } from '../../formats/testing/models.js';
import { projectRoot } from '../../platform/process/root.js';
import type { TestStack } from '../support/stack.js';

const FOLDER = join(projectRoot(), 'test', 'e2e', 'hf-llama', 'model');

/** Uploads a small model with a chat template under a name. */
export async function uploadBase({ client }: TestStack, name: string): Promise<void> {
  const files = readdirSync(FOLDER).map((file) => [file, readFileSync(join(FOLDER, file))] as const);
  await client.models.create(name, await tarOf(files));
}

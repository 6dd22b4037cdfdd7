/**
 * What tools/gpu/check.py measures, where Node.js is: `npm run bench -- gpu --config gpt2,llama-1b`. Builds the native core
 * for this machine's GPU, measures what it does at most, each kernel beside that, and whole trainings, beside PyTorch's with
 * the Python that `--peer` names. Everything else is in docs/gpu.md.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { projectRoot } from '../platform/process/root.js';

const script = join(projectRoot(), 'tools', 'gpu', 'check.py');
const child = spawn('python3', [script, '--stage', 'build,bench', ...process.argv.slice(2)], {
  stdio: 'inherit',
});
child.on('error', (error) => process.stderr.write(`python3 could not be started: ${error.message}\n`));
const [code] = await once(child, 'close');
process.exitCode = code ?? 1;

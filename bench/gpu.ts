/**
 * Measurements of tools/gpu/check.py on machines with Node.js: `npm run bench -- gpu --config gpt2,llama-1b`. Builds
 * the native core for this machine's GPU, and measures the GPU's peak rates and each kernel relative to them. Whole
 * trainings are compared with PyTorch in the Python given by `--peer`. Everything else is in docs/gpu.md.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { projectRoot } from '../platform/process/root.js';

const script = join(projectRoot(), 'tools', 'gpu', 'check.py');
const child = spawn('python3', [script, '--stage', 'build,kernels,training', ...process.argv.slice(2)], {
  stdio: 'inherit',
});
child.on('error', (error) => process.stderr.write(`python3 could not be started: ${error.message}\n`));
const [code] = await once(child, 'close');
process.exitCode = code ?? 1;

/**
 * Loads the native core with an emulated CUDA device (native/test/cuda_emulator) for this process. Must be imported
 * first.
 */
import { join } from 'node:path';
import { useAddon } from '../../../native/js/testing.js';
import { projectRoot } from '../../../platform/process/root.js';

useAddon(join(projectRoot(), 'native', 'build', 'emulated', 'zerofleet.node'));

/** The native core with an emulated CUDA device in it (native/test/cuda_emulator), for this process. Its import must come first. */
import { join } from 'node:path';
import { useAddon } from '../../../native/js/testing.js';
import { projectRoot } from '../../../platform/process/root.js';

useAddon(join(projectRoot(), 'native', 'build', 'emulated', 'zerofleet.node'));

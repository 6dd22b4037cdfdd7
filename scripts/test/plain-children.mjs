// Loaded by tap into each test file's process (.taprc). tap makes every child process of a test, and theirs, record what it loads: through
// a thread that resolves each module, a quarter of the processor time of a whole-system test. Nothing here reads those records.
import processOnSpawn from 'process-on-spawn';

processOnSpawn.removeAllListeners();
const recorder = /"?--import=\S*@tapjs\/processinfo\S*/g;
const options = process.env.NODE_OPTIONS?.replace(recorder, '').trim();
if (options) process.env.NODE_OPTIONS = options;
else delete process.env.NODE_OPTIONS;

/** Entry point of the autoscaler program. */
import { runProgram } from '../platform/process/run-program.js';
import { startAutoscaler } from './start.js';

await runProgram('autoscaler', startAutoscaler);

/** A production task process on a machine with emulated devices. */
import './addon.js';
import '../../../worker/task-process/main.js';

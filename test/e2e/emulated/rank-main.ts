/** A rank process as it is, on an emulated device. */
import './addon.js';
import '../../../worker/rank/main.js';

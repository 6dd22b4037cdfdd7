/** A production rank process on an emulated device. */
import './addon.js';
import '../../../worker/rank/main.js';

/** Windows of Qwen2 and Qwen3: some layers, by default the last ones, may have one. */
import type { ConfigReader } from '../reader.js';
import type { ConfigOf } from './family.js';
import { readLayerTypes, readSwitchedWindow } from './layer-types.js';

type Windows = Pick<
  ConfigOf<'qwen2'>,
  'use_sliding_window' | 'sliding_window' | 'max_window_layers' | 'layer_types'
>;

export function readQwenWindows(reader: ConfigReader, layers: number): Windows {
  const window = readSwitchedWindow(reader, 4096);
  const maxWindowLayers = reader.integer('max_window_layers', { min: 0, max: 1024, fallback: 28 });
  const slides = (layer: number) => layer >= maxWindowLayers;
  return {
    ...window,
    max_window_layers: maxWindowLayers,
    layer_types: readLayerTypes(reader, layers, window.sliding_window, slides),
  };
}

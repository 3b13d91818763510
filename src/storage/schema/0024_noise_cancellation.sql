-- True was stored where nobody had asked for it. From now on, null means not asked for, and has an
-- effect in web calls only.
UPDATE assistants SET settings = replace(
  settings, '"enable_noise_cancellation":true', '"enable_noise_cancellation":null');
